-- why:      servers of tenants are told of what happens to runs: where one listens (webhook_endpoint), and each telling
--           (webhook_delivery), which is born by the statement that ends the run, or not at all; emails have templates
-- locks:    none that matter (new tables)
-- breaking: no

create table webhook_endpoint (
  id uuid primary key,
  tenant_id uuid not null references tenant (id) on delete cascade,
  url text not null,
  description text,
  events text[] not null,
  schedule_ids uuid[], -- null: runs of every schedule, and those without one
  late_after_ms integer not null default 60000, -- what `run.late` means to it
  status text not null default 'enabled',
  disabled_at timestamptz,
  disabled_reason text,
  -- Attempts that failed since the last one that did not.
  failures integer not null default 0,
  failing_since timestamptz,
  last_delivered_at timestamptz,
  created_at timestamptz not null,
  created_by text not null,
  constraint a_webhook_is_in_a_known_status check (status in ('enabled', 'disabled')),
  constraint a_disabled_webhook_says_why check ((status = 'disabled') = (disabled_at is not null and disabled_reason is not null)),
  constraint failures_have_a_beginning check ((failures > 0) = (failing_since is not null)),
  constraint a_webhook_hears_of_something check (cardinality(events) > 0),
  constraint lateness_takes_time check (late_after_ms >= 1000)
) with (fillfactor = 70);
-- Looked at by every statement that ends or starts runs: a tenant that is not in it costs one look.
create index webhook_endpoint_told on webhook_endpoint (tenant_id) where status = 'enabled';
create index webhook_endpoint_of_tenant on webhook_endpoint (tenant_id, id desc);

create table webhook_delivery (
  id bigint generated always as identity primary key,
  endpoint_id uuid not null, -- no reference: telling locks no endpoint; what has none any more is not sent
  tenant_id uuid not null,
  type text not null,
  run_id uuid, -- null: a test
  n integer not null, -- attempts the run had: it fails again after a replay, and that is another event
  facts jsonb not null, -- what is told, as it was then
  occurred_at timestamptz not null,
  state text not null default 'pending',
  next_attempt_at timestamptz not null, -- of one that is being sent: when its sender is not believed in any more
  attempts integer not null default 0,
  budget_attempts integer not null default 0,
  budget_from timestamptz not null,
  claim_id uuid,
  answer_status integer,
  message text,
  settled_at timestamptz,
  constraint a_delivery_is_in_a_known_state check (state in ('pending', 'sending', 'delivered', 'failed')),
  constraint a_settled_delivery_has_a_time check ((settled_at is not null) = (state in ('delivered', 'failed'))),
  constraint a_delivery_being_sent_is_claimed check (state <> 'sending' or claim_id is not null),
  constraint a_delivery_counts_its_attempts check (attempts >= budget_attempts and budget_attempts >= 0),
  constraint a_delivery_message_is_bounded check (length(message) <= 4000)
) with (fillfactor = 80);
create unique index webhook_delivery_once on webhook_delivery (endpoint_id, type, run_id, n);
create index webhook_delivery_due on webhook_delivery (tenant_id, next_attempt_at) where settled_at is null;
create index webhook_delivery_open on webhook_delivery (next_attempt_at) where settled_at is null;
create index webhook_delivery_of_endpoint on webhook_delivery (endpoint_id, id desc);

-- What emails of a tenant's effects say, by name. Which text an email has is fixed with its effect, not here.
create table email_template (
  tenant_id uuid not null references tenant (id) on delete cascade,
  name text not null,
  version integer not null default 1,
  subject text not null,
  text text not null,
  html text,
  updated_at timestamptz not null,
  updated_by text not null,
  primary key (tenant_id, name),
  constraint an_email_template_has_a_name check (name ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
  constraint an_email_template_counts_from_1 check (version >= 1)
);
