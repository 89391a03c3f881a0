-- why:      secrets in payloads are sealed with a key of their tenant, which is kept here wrapped by a master key that is
--           kept elsewhere
-- locks:    none that matter (a new table)
-- breaking: no

create table tenant_data_key (
  tenant_id uuid not null references tenant (id) on delete cascade,
  id uuid not null,
  wrapped bytea not null, -- nonce, ciphertext, tag; bound to tenant and id
  master_key_id text not null,
  created_at timestamptz not null default clock_timestamp(),
  retired_at timestamptz, -- it opens what it sealed, and seals nothing more
  primary key (tenant_id, id),
  constraint a_data_key_is_wrapped check (length(wrapped) = 60),
  constraint a_master_key_id_is_short check (length(master_key_id) between 1 and 40)
);
create unique index tenant_data_key_in_use on tenant_data_key (tenant_id) where retired_at is null;
