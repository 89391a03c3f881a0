-- why:      what a tenant sends to others (HTTP jobs, webhooks) is signed with keys of its own, sealed like its secrets
-- locks:    none that matter (a new table)
-- breaking: no

create table signing_key (
  id uuid primary key,
  tenant_id uuid not null references tenant (id) on delete cascade,
  label text not null,
  sealed text, -- under the tenant's data key; gone once the key is revoked
  created_at timestamptz not null,
  created_by text not null,
  active_until timestamptz, -- null: for ever
  revoked_at timestamptz,
  rotated_from uuid,
  replaced_by uuid,
  constraint a_revoked_signing_key_is_kept_by_nobody check ((sealed is null) = (revoked_at is not null)),
  constraint a_replaced_signing_key_ends check (replaced_by is null or active_until is not null)
);
create index signing_key_of_tenant on signing_key (tenant_id, id desc);
create index signing_key_in_use on signing_key (tenant_id) where revoked_at is null;
