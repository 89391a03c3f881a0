-- why:      the tables of the scheduling authority: schedules, runs, leases, outbox, and what the control plane needs
-- locks:    none that matter (new tables)
-- breaking: no

-- Ids are UUIDv8: 48 bits of epoch ms, 10 bits of bucket, 64 bits of tail (src/kernel/ids.ts).
-- Only built-in immutable functions, so that any tool can compute a row's bucket from its key.
create function bucket_of(id uuid) returns smallint
  language sql immutable strict parallel safe
  return ((get_byte(uuid_send(id), 6) & 3) << 8 | get_byte(uuid_send(id), 7))::smallint;

create function instant_of(id uuid) returns timestamptz
  language sql immutable strict parallel safe
  return to_timestamp((('x' || left(id::text, 8) || substr(id::text, 10, 4))::bit(48)::bigint) / 1000.0::double precision);

------------------------------------------------------------------------------------------------------------------
-- Control plane
------------------------------------------------------------------------------------------------------------------

create table authority_epoch (
  only_row boolean primary key default true,
  epoch integer not null,
  system_identifier bigint not null,
  timeline integer not null,
  raised_at timestamptz not null default clock_timestamp(),
  constraint there_is_one_authority check (only_row),
  constraint an_epoch_is_positive check (epoch between 1 and 4194303) -- fence = epoch * 2^40 + sequence fits a bigint
);

create table tenant (
  id uuid primary key,
  name text not null,
  status text not null default 'active',
  created_at timestamptz not null default clock_timestamp(),
  constraint a_tenant_is_active_or_suspended check (status in ('active', 'suspended')),
  constraint a_tenant_name_is_short check (length(name) between 1 and 200)
);
create unique index tenant_name on tenant (name);

create table api_key (
  id uuid primary key,
  tenant_id uuid not null references tenant (id),
  prefix text not null,
  secret_hash bytea not null,
  role text not null,
  label text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint an_api_key_has_a_known_role check (role in ('admin', 'owner', 'operator', 'viewer', 'worker')),
  constraint an_api_key_is_hashed check (length(secret_hash) = 32)
);
create unique index api_key_prefix on api_key (prefix);

create table quota (
  tenant_id uuid not null references tenant (id),
  class text not null,
  max_running integer,
  start_rate_per_second integer,
  weight integer not null default 1,
  version bigint not null default 1,
  primary key (tenant_id, class),
  constraint a_running_limit_is_not_negative check (max_running >= 0),
  constraint a_start_rate_is_positive check (start_rate_per_second > 0),
  constraint a_weight_is_between_1_and_1000 check (weight between 1 and 1000)
);

create table calendar (
  tenant_id uuid not null references tenant (id),
  name text not null,
  version integer not null,
  definition jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, name, version)
);

create table audit_event (
  id bigint generated always as identity primary key,
  tenant_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  subject text not null,
  request_id text,
  before jsonb,
  after jsonb
);
create index audit_event_of_tenant on audit_event (tenant_id, at desc, id desc);

create table bucket_directory (
  bucket smallint primary key,
  shard smallint not null default 0,
  version bigint not null default 1,
  constraint a_bucket_is_one_of_1024 check (bucket between 0 and 1023)
);
insert into bucket_directory (bucket) select generate_series(0, 1023);

-- One row per live scanner; buckets go to live scanners by rendezvous hash (src/domain/rendezvous.ts).
create table scanner (
  id uuid primary key,
  epoch bigint not null default 1,
  started_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);

create table tz_data (
  version text primary key,
  sha256 bytea not null,
  bytes bytea not null,
  adopted_at timestamptz,
  constraint a_sha256_has_32_bytes check (length(sha256) = 32)
);

-- Instants before the floor have no partition: they live only in skip_range.
create table history_floor (
  only_row boolean primary key default true,
  floor_at timestamptz not null,
  constraint there_is_one_floor check (only_row)
);

------------------------------------------------------------------------------------------------------------------
-- Schedules
------------------------------------------------------------------------------------------------------------------

create table schedule (
  id uuid primary key,
  tenant_id uuid not null,
  bucket smallint not null generated always as (bucket_of(id)) stored,
  key text,
  name text not null,
  labels jsonb not null default '{}',
  managed_by text,
  status text not null default 'active',
  revision integer not null default 1,
  notes text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint a_schedule_has_a_known_status check (status in ('active', 'paused', 'finished', 'deleted')),
  constraint a_revision_counts_from_1 check (revision >= 1),
  constraint a_schedule_name_is_short check (length(name) between 1 and 200),
  constraint a_schedule_key_is_short check (length(key) between 1 and 200)
);
create unique index schedule_key on schedule (tenant_id, key) where key is not null and status <> 'deleted';
create index schedule_of_tenant on schedule (tenant_id, id desc);

-- Every revision, for ever: runs point here instead of copying definition and payload.
create table schedule_revision (
  schedule_id uuid not null,
  revision integer not null,
  actor text not null,
  created_at timestamptz not null,
  definition json not null, -- json, not jsonb: read far more often than looked into, and printed at no cost
  payload json not null,
  primary key (schedule_id, revision)
);

-- The narrow moving row of a schedule, and the schedule's lock.
create table schedule_cursor (
  schedule_id uuid primary key,
  bucket smallint not null generated always as (bucket_of(schedule_id)) stored,
  tenant_id uuid not null,
  revision integer not null,
  next_run_at timestamptz,
  next_due_at timestamptz,
  chain_started_at timestamptz not null,
  chain_reason text not null default 'created',
  last_nominal_at timestamptz,
  last_nominal_local text,
  runs_made bigint not null default 0,
  tz_version text not null,
  parser_version smallint not null,
  calendar_version integer,
  fault text,
  fault_retry_at timestamptz,
  constraint a_due_cursor_has_a_nominal_instant check (next_due_at is null or next_run_at is not null),
  constraint a_chain_starts_for_a_known_reason check (chain_reason in ('created', 'revised', 'resumed', 'adopted'))
) with (fillfactor = 70);
create index schedule_cursor_due on schedule_cursor (next_due_at, bucket) where next_due_at is not null;
create index schedule_cursor_fault on schedule_cursor (fault_retry_at) where fault is not null;

------------------------------------------------------------------------------------------------------------------
-- Runs: history. Written at birth and at the end, nothing in between. No default partition, on purpose.
------------------------------------------------------------------------------------------------------------------

create table run (
  id uuid not null,
  scheduled_at timestamptz not null,
  schedule_id uuid,
  tenant_id uuid not null,
  class text not null,
  due_at timestamptz not null,
  admitted_at timestamptz not null,
  materialized_at timestamptz not null,
  prev_scheduled_at timestamptz,
  revision integer,
  trigger text not null,
  state text not null,
  skip_reason text,
  attempts integer not null default 0,
  accepted_fence bigint,
  started_at timestamptz,
  finished_at timestamptz,
  job jsonb,
  payload jsonb,
  result_uri text,
  result_version text,
  result_sha256 text,
  result_size bigint,
  result_media_type text,
  result_object uuid,
  cancel_requested_at timestamptz,
  cancel_accepted_at timestamptz,
  error_code text,
  error_message text,
  primary key (scheduled_at, id),
  constraint a_run_is_in_a_known_state check (state in ('open', 'succeeded', 'failed', 'canceled', 'skipped')),
  constraint a_run_is_triggered_by_a_known_cause check (trigger in ('schedule', 'manual', 'backfill', 'catch-up', 'api')),
  constraint a_run_id_carries_its_nominal_instant check (scheduled_at = instant_of(id)),
  constraint an_ended_run_has_an_end check ((state = 'open') = (finished_at is null)),
  constraint a_skip_has_a_reason check ((state = 'skipped') = (skip_reason is not null)),
  constraint only_success_has_a_result check (result_uri is null or state = 'succeeded'),
  constraint a_result_is_whole check ((result_uri is null) = (result_sha256 is null) and (result_uri is null) = (result_size is null)),
  constraint success_was_accepted_from_a_fence check (state <> 'succeeded' or accepted_fence is not null),
  constraint a_canceled_run_was_accepted_as_canceled check ((state = 'canceled') = (cancel_accepted_at is not null)),
  constraint a_run_has_a_revision_or_its_own_job check (revision is not null or job is not null),
  constraint an_error_message_is_bounded check (length(error_message) <= 4000)
) partition by range (scheduled_at);
create index run_of_schedule on run (schedule_id, scheduled_at desc, id desc);
create index run_of_tenant on run (tenant_id, scheduled_at desc, id desc);

create table attempt (
  scheduled_at timestamptz not null,
  run_id uuid not null,
  n integer not null,
  claim_id uuid not null,
  fence bigint not null,
  worker text not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  outcome text,
  error_code text,
  error_message text,
  progress jsonb,
  log_uri text,
  primary key (scheduled_at, run_id, n),
  constraint an_attempt_ends_in_a_known_way check (outcome in ('failed', 'expired', 'canceled', 'released')),
  constraint an_ended_attempt_has_an_outcome check ((ended_at is null) = (outcome is null)),
  constraint attempts_count_from_1 check (n >= 1),
  constraint an_attempt_error_is_bounded check (length(error_message) <= 4000)
) partition by range (scheduled_at);

-- Skipped instants too many for a row each.
create table skip_range (
  schedule_id uuid not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  tenant_id uuid not null,
  revision integer not null,
  reason text not null,
  instants bigint,
  prev_scheduled_at timestamptz,
  created_at timestamptz not null,
  primary key (schedule_id, from_at),
  constraint a_range_runs_forward check (to_at >= from_at),
  constraint a_counted_range_is_not_empty check (instants is null or instants >= 1)
);

------------------------------------------------------------------------------------------------------------------
-- What is open now. Small; claims and heartbeats touch no indexed column, so they stay HOT.
------------------------------------------------------------------------------------------------------------------

create table live_run (
  id uuid primary key,
  scheduled_at timestamptz not null,
  schedule_id uuid,
  tenant_id uuid not null,
  class text not null,
  lane smallint not null,
  revision integer,
  state text not null,
  guard uuid,
  not_before timestamptz not null,
  due_at timestamptz not null,
  admitted_at timestamptz not null,
  started_at timestamptz,
  start_deadline timestamptz,
  attempt integer not null default 0,
  budget_from timestamptz not null,
  budget_attempt integer not null default 0,
  interruptions integer not null default 0,
  expiries integer not null default 0,
  held_by text not null default 'none',
  fence bigint,
  claim_id uuid,
  worker text,
  lease_until timestamptz,
  last_heartbeat_at timestamptz,
  deadline_at timestamptz,
  cancel_requested_at timestamptz,
  own_work boolean not null default false, -- job or payload stand in the run row, not in the revision
  constraint a_live_run_is_in_a_known_state check (state in ('queued', 'blocked', 'running', 'retrying')),
  constraint a_lane_is_strict_normal_or_late check (lane in (0, 1, 2)),
  constraint only_a_blocked_run_has_no_guard check ((state = 'blocked') = (guard is null)),
  constraint running_means_leased check (
    (state = 'running') = (lease_until is not null)
    and (state = 'running') = (fence is not null)
    and (state = 'running') = (claim_id is not null)
    and (state = 'running') = (deadline_at is not null)
  ),
  constraint a_started_run_had_an_attempt check (attempt > 0 or started_at is null),
  constraint a_run_is_held_by_a_known_cause check (held_by in ('none', 'overlap', 'tenant-limit', 'rate', 'replay'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
create unique index live_run_guard on live_run (guard);
create index live_run_of_schedule on live_run (schedule_id, scheduled_at);
create index live_run_of_class on live_run (tenant_id, class, scheduled_at);

create sequence fence_seq as bigint cache 1;

-- What must still be dispatched. The row is the hint; whoever deletes it in a claim dispatches its runs.
-- Belongs to the shard, not to a bucket: it can be rebuilt from live_run.
create table outbox (
  id bigint generated always as identity primary key,
  kind text not null,
  tenant_id uuid not null,
  class text not null,
  lane smallint not null,
  available_at timestamptz not null,
  runs uuid[] not null,
  published_at timestamptz,
  publish_no integer not null default 0,
  constraint an_intent_is_of_a_known_kind check (kind in ('run', 'effect', 'schedule')),
  constraint an_outbox_row_names_1_to_32_runs check (cardinality(runs) between 1 and 32),
  constraint an_outbox_lane_is_known check (lane in (0, 1, 2)),
  constraint a_published_row_has_a_number check (published_at is null or publish_no >= 1)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
create index outbox_unpublished on outbox (kind, class, tenant_id, lane, available_at, id) where published_at is null;
create index outbox_published on outbox (published_at) where published_at is not null;

-- Running attempts per tenant and class, and the limit they are held to (copied from quota under this row's lock).
create table usage (
  tenant_id uuid not null,
  class text not null,
  running integer not null default 0,
  max_running integer,
  start_rate_per_second integer,
  starts_window_at timestamptz,
  starts_in_window integer not null default 0,
  primary key (tenant_id, class),
  constraint nobody_runs_less_than_nothing check (running >= 0)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

------------------------------------------------------------------------------------------------------------------
-- Results, effects, dead letters, keys, operations
------------------------------------------------------------------------------------------------------------------

create table object (
  id uuid primary key,
  tenant_id uuid not null,
  run_id uuid not null,
  attempt integer not null,
  fence bigint not null,
  name text not null,
  state text not null,
  uri text not null,
  version text,
  sha256 text,
  size bigint,
  media_type text not null,
  granted_until timestamptz not null,
  pin_until timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  referenced_at timestamptz,
  constraint an_object_is_in_a_known_state check (state in ('granted', 'staged', 'referenced', 'deleting', 'deleted')),
  constraint a_staged_object_was_verified check (state = 'granted' or state in ('deleting', 'deleted') or (sha256 is not null and size is not null)),
  constraint a_sha256_is_64_hex_digits check (sha256 ~ '^[0-9a-f]{64}$')
);
create index object_of_run on object (run_id);
create index object_to_clean on object (state, created_at) where state in ('granted', 'staged', 'deleting');

create table effect (
  id uuid primary key,
  tenant_id uuid not null,
  run_id uuid not null,
  object_id uuid,
  kind text not null,
  action_id text not null,
  state text not null default 'pending',
  request jsonb not null,
  on_uncertain text not null default 'hold',
  attempts integer not null default 0,
  fence bigint,
  lease_until timestamptz,
  first_sent_at timestamptz,
  external_id text,
  error_message text,
  resolution text,
  created_at timestamptz not null default clock_timestamp(),
  settled_at timestamptz,
  constraint an_effect_is_in_a_known_state check (state in ('pending', 'sending', 'sent', 'uncertain', 'failed', 'resolved')),
  constraint an_uncertain_effect_has_a_policy check (on_uncertain in ('hold', 'resend', 'drop')),
  constraint sending_means_leased check ((state = 'sending') = (lease_until is not null)),
  constraint an_action_is_made_once unique (run_id, action_id)
);
create index effect_unsettled on effect (tenant_id, created_at) where state in ('pending', 'sending', 'uncertain');

create table effect_attempt (
  effect_id uuid not null,
  n integer not null,
  fence bigint not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  outcome text,
  external_id text,
  error_message text,
  primary key (effect_id, n),
  constraint an_effect_attempt_ends_in_a_known_way check (outcome in ('sent', 'retry', 'uncertain', 'failed'))
);

create table dead_letter (
  run_id uuid primary key,
  scheduled_at timestamptz not null,
  tenant_id uuid not null,
  schedule_id uuid,
  class text not null,
  reason text not null,
  fingerprint text not null,
  attempts integer not null,
  error_message text,
  created_at timestamptz not null,
  resolved_at timestamptz,
  resolution text,
  resolved_by text,
  constraint a_dead_letter_is_resolved_in_a_known_way check (resolution in ('replayed', 'dismissed')),
  constraint a_resolution_has_a_time check ((resolved_at is null) = (resolution is null))
);
create index dead_letter_open on dead_letter (tenant_id, created_at desc, run_id) where resolved_at is null;
create index dead_letter_of_schedule on dead_letter (schedule_id, created_at desc) where schedule_id is not null;

-- A caller's key is the identity of what it created. The scope is a tenant (creation) or a schedule (run-now).
create table request_key (
  scope uuid not null,
  key text not null,
  request_sha256 bytea not null,
  subject uuid not null,
  answer jsonb,
  created_at timestamptz not null default clock_timestamp(),
  primary key (scope, key),
  constraint a_request_key_is_short check (length(key) between 1 and 255),
  constraint a_request_is_known_by_its_hash check (length(request_sha256) = 32)
);
create index request_key_age on request_key (created_at);

create table operation (
  id uuid primary key,
  tenant_id uuid not null,
  schedule_id uuid,
  kind text not null,
  state text not null default 'pending',
  arguments jsonb not null,
  cursor jsonb,
  done bigint not null default 0,
  failed bigint not null default 0,
  total bigint,
  pace_per_second integer,
  actor text not null,
  reason text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  constraint an_operation_is_in_a_known_state check (state in ('pending', 'working', 'done', 'canceled', 'failed'))
);
create index operation_open on operation (created_at) where state in ('pending', 'working');

create table worker (
  id uuid primary key,
  name text not null,
  slots jsonb not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  stopping boolean not null default false
);

-- Per tenant, class and minute; kept incrementally, so that no dashboard scans runs.
create table rollup_minute (
  tenant_id uuid not null,
  class text not null,
  minute_at timestamptz not null,
  started integer not null default 0,
  succeeded integer not null default 0,
  failed integer not null default 0,
  canceled integer not null default 0,
  lateness integer[] not null default '{}',
  primary key (tenant_id, class, minute_at)
);
