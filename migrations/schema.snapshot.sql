-- What the migrations add up to. Written by test/store/migrate.test.ts: npx vitest run test/store/migrate.test.ts -u

table api_key
  column id uuid not null
  column tenant_id uuid not null
  column prefix text not null
  column secret_hash bytea not null
  column role text not null
  column label text not null default ''::text
  column created_at timestamp with time zone not null default clock_timestamp()
  column expires_at timestamp with time zone
  column revoked_at timestamp with time zone
  column last_used_at timestamp with time zone
  column created_by text
  column rotated_from uuid
  column replaced_by uuid
  constraint an_api_key_has_a_known_role CHECK ((role = ANY (ARRAY['admin'::text, 'owner'::text, 'operator'::text, 'viewer'::text, 'worker'::text])))
  constraint an_api_key_is_hashed CHECK ((length(secret_hash) = 32))
  constraint api_key_pkey PRIMARY KEY (id)
  constraint api_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id)
  CREATE INDEX api_key_of_tenant ON public.api_key USING btree (tenant_id, id DESC)
  CREATE UNIQUE INDEX api_key_pkey ON public.api_key USING btree (id)
  CREATE UNIQUE INDEX api_key_prefix ON public.api_key USING btree (prefix)

partitioned table attempt by RANGE (scheduled_at)
  column scheduled_at timestamp with time zone not null
  column run_id uuid not null
  column n integer not null
  column claim_id uuid not null
  column fence bigint not null
  column worker text not null
  column started_at timestamp with time zone not null
  column ended_at timestamp with time zone
  column outcome text
  column error_code text
  column error_message text
  column progress jsonb
  column log_uri text
  column detached_at timestamp with time zone
  column adopted_by text
  constraint an_attempt_ends_in_a_known_way CHECK ((outcome = ANY (ARRAY['failed'::text, 'expired'::text, 'canceled'::text, 'released'::text])))
  constraint an_attempt_error_is_bounded CHECK ((length(error_message) <= 4000))
  constraint an_ended_attempt_has_an_outcome CHECK (((ended_at IS NULL) = (outcome IS NULL)))
  constraint attempt_pkey PRIMARY KEY (scheduled_at, run_id, n)
  constraint attempts_count_from_1 CHECK ((n >= 1))
  CREATE UNIQUE INDEX attempt_pkey ON ONLY public.attempt USING btree (scheduled_at, run_id, n)

table attempt_log
  column run_id uuid not null
  column attempt integer not null
  column n integer not null
  column object_id uuid not null
  column at_byte bigint not null
  column size integer not null
  column written_at timestamp with time zone not null
  constraint a_part_has_bytes CHECK (((size > 0) AND (at_byte >= 0)))
  constraint attempt_log_pkey PRIMARY KEY (run_id, attempt, n)
  constraint parts_count_from_1 CHECK ((n >= 1))
  CREATE UNIQUE INDEX attempt_log_pkey ON public.attempt_log USING btree (run_id, attempt, n)

table audit_event
  column id bigint not null identity always
  column tenant_id uuid not null
  column at timestamp with time zone not null default clock_timestamp()
  column actor text not null
  column action text not null
  column subject text not null
  column request_id text
  column before jsonb
  column after jsonb
  column key_id uuid
  column address text
  column acting_for boolean not null default false
  constraint an_audit_address_is_short CHECK ((length(address) <= 64))
  constraint audit_event_pkey PRIMARY KEY (id)
  CREATE INDEX audit_event_of_actor ON public.audit_event USING btree (tenant_id, actor, at DESC, id DESC)
  CREATE INDEX audit_event_of_request ON public.audit_event USING btree (tenant_id, request_id, at DESC, id DESC) WHERE (request_id IS NOT NULL)
  CREATE INDEX audit_event_of_subject ON public.audit_event USING btree (tenant_id, subject, at DESC, id DESC)
  CREATE INDEX audit_event_of_tenant ON public.audit_event USING btree (tenant_id, at DESC, id DESC)
  CREATE UNIQUE INDEX audit_event_pkey ON public.audit_event USING btree (id)
  CREATE TRIGGER audit_event_is_append_only BEFORE DELETE OR UPDATE ON public.audit_event FOR EACH ROW EXECUTE FUNCTION refuse_to_rewrite_audit()
  CREATE TRIGGER audit_event_is_not_truncated BEFORE TRUNCATE ON public.audit_event FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_rewrite_audit()

sequence audit_event_id_seq as bigint start 1 increment 1 cache 1

table authority_epoch
  column only_row boolean not null default true
  column epoch integer not null
  column system_identifier bigint not null
  column timeline integer not null
  column raised_at timestamp with time zone not null default clock_timestamp()
  column database_oid oid
  constraint an_epoch_is_positive CHECK (((epoch >= 1) AND (epoch <= 4194303)))
  constraint authority_epoch_pkey PRIMARY KEY (only_row)
  constraint there_is_one_authority CHECK (only_row)
  CREATE UNIQUE INDEX authority_epoch_pkey ON public.authority_epoch USING btree (only_row)

table bucket_directory
  column bucket smallint not null
  column shard smallint not null default 0
  column version bigint not null default 1
  constraint a_bucket_is_one_of_1024 CHECK (((bucket >= 0) AND (bucket <= 1023)))
  constraint bucket_directory_pkey PRIMARY KEY (bucket)
  CREATE UNIQUE INDEX bucket_directory_pkey ON public.bucket_directory USING btree (bucket)

CREATE OR REPLACE FUNCTION public.bucket_of(id uuid)
 RETURNS smallint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((((get_byte(uuid_send(id), 6) & 3) << 8) | get_byte(uuid_send(id), 7)))::smallint

table calendar
  column tenant_id uuid not null
  column name text not null
  column version integer not null
  column definition jsonb not null
  column created_at timestamp with time zone not null default clock_timestamp()
  column actor text not null default 'unknown'::text
  constraint calendar_pkey PRIMARY KEY (tenant_id, name, version)
  constraint calendar_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id)
  CREATE UNIQUE INDEX calendar_pkey ON public.calendar USING btree (tenant_id, name, version)

table calendar_head
  column tenant_id uuid not null
  column name text not null
  column version integer not null
  constraint a_calendar_version_counts_from_1 CHECK ((version >= 1))
  constraint calendar_head_pkey PRIMARY KEY (tenant_id, name)
  constraint calendar_head_tenant_id_name_version_fkey FOREIGN KEY (tenant_id, name, version) REFERENCES calendar(tenant_id, name, version)
  CREATE UNIQUE INDEX calendar_head_pkey ON public.calendar_head USING btree (tenant_id, name)

table calendar_use
  column tenant_id uuid not null
  column calendar text not null
  column schedule_id uuid not null
  constraint calendar_use_pkey PRIMARY KEY (tenant_id, calendar, schedule_id)
  constraint calendar_use_tenant_id_calendar_fkey FOREIGN KEY (tenant_id, calendar) REFERENCES calendar_head(tenant_id, name)
  CREATE INDEX calendar_use_of_schedule ON public.calendar_use USING btree (schedule_id)
  CREATE UNIQUE INDEX calendar_use_pkey ON public.calendar_use USING btree (tenant_id, calendar, schedule_id)

table chain
  column schedule_id uuid not null
  column n integer not null
  column started_at timestamp with time zone not null
  column reason text not null
  column revision integer not null
  column prev_last_at timestamp with time zone
  column prev_next_at timestamp with time zone
  column prev_fault text
  constraint a_kept_chain_started_for_a_known_reason CHECK ((reason = ANY (ARRAY['created'::text, 'revised'::text, 'resumed'::text, 'adopted'::text])))
  constraint chain_pkey PRIMARY KEY (schedule_id, n)
  constraint chains_count_from_1 CHECK ((n >= 1))
  CREATE UNIQUE INDEX chain_pkey ON public.chain USING btree (schedule_id, n)

table dead_letter
  column run_id uuid not null
  column scheduled_at timestamp with time zone not null
  column tenant_id uuid not null
  column schedule_id uuid
  column class text not null
  column reason text not null
  column fingerprint text not null
  column attempts integer not null
  column error_message text
  column created_at timestamp with time zone not null
  column resolved_at timestamp with time zone
  column resolution text
  column resolved_by text
  column error_code text
  constraint a_dead_letter_is_resolved_in_a_known_way CHECK ((resolution = ANY (ARRAY['replayed'::text, 'dismissed'::text])))
  constraint a_resolution_has_a_time CHECK (((resolved_at IS NULL) = (resolution IS NULL)))
  constraint dead_letter_pkey PRIMARY KEY (run_id)
  CREATE INDEX dead_letter_of_schedule ON public.dead_letter USING btree (schedule_id, created_at, run_id) WHERE (schedule_id IS NOT NULL)
  CREATE INDEX dead_letter_of_tenant ON public.dead_letter USING btree (tenant_id, created_at, run_id)
  CREATE INDEX dead_letter_open ON public.dead_letter USING btree (tenant_id, created_at, run_id) WHERE (resolved_at IS NULL)
  CREATE INDEX dead_letter_open_of_schedule ON public.dead_letter USING btree (schedule_id, created_at, run_id) WHERE ((schedule_id IS NOT NULL) AND (resolved_at IS NULL))
  CREATE INDEX dead_letter_open_since ON public.dead_letter USING btree (created_at) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX dead_letter_pkey ON public.dead_letter USING btree (run_id)
  CREATE INDEX dead_letter_resolved ON public.dead_letter USING btree (resolved_at) WHERE (resolved_at IS NOT NULL)

table dead_letter_resolution
  column run_id uuid not null
  column n integer not null
  column failed_at timestamp with time zone not null
  column failure text not null
  column fingerprint text not null
  column attempts integer not null
  column error_code text
  column error_message text
  column resolution text not null
  column resolved_at timestamp with time zone not null
  column resolved_by text not null
  column reason text
  column operation_id uuid
  constraint a_resolution_is_a_known_one CHECK ((resolution = ANY (ARRAY['replayed'::text, 'dismissed'::text])))
  constraint dead_letter_resolution_pkey PRIMARY KEY (run_id, n)
  constraint resolutions_count_from_1 CHECK ((n >= 1))
  CREATE UNIQUE INDEX dead_letter_resolution_pkey ON public.dead_letter_resolution USING btree (run_id, n)

table effect
  column id uuid not null
  column tenant_id uuid not null
  column run_id uuid not null
  column object_id uuid
  column kind text not null
  column action_id text not null
  column state text not null default 'pending'::text
  column request jsonb not null
  column on_uncertain text not null default 'hold'::text
  column attempts integer not null default 0
  column fence bigint
  column lease_until timestamp with time zone
  column first_sent_at timestamp with time zone
  column external_id text
  column error_message text
  column resolution text
  column created_at timestamp with time zone not null default clock_timestamp()
  column settled_at timestamp with time zone
  column name text not null
  column schedule_id uuid
  column next_attempt_at timestamp with time zone not null default clock_timestamp()
  column budget_from timestamp with time zone not null default clock_timestamp()
  column budget_attempts integer not null default 0
  column in_doubt boolean not null default false
  column claim_id uuid
  column resolved_by text
  column doubted_before boolean not null default false
  constraint a_resolved_effect_says_how CHECK (((state = 'resolved'::text) = (resolution IS NOT NULL)))
  constraint a_sending_effect_is_claimed CHECK (((state <> 'sending'::text) OR ((fence IS NOT NULL) AND (claim_id IS NOT NULL))))
  constraint a_settled_effect_has_a_time CHECK (((settled_at IS NOT NULL) = (state = ANY (ARRAY['sent'::text, 'failed'::text, 'resolved'::text]))))
  constraint an_action_is_made_once UNIQUE (run_id, action_id)
  constraint an_effect_counts_its_attempts CHECK (((attempts >= budget_attempts) AND (budget_attempts >= 0)))
  constraint an_effect_is_in_a_known_state CHECK ((state = ANY (ARRAY['pending'::text, 'sending'::text, 'sent'::text, 'uncertain'::text, 'failed'::text, 'resolved'::text])))
  constraint an_effect_is_of_a_known_kind CHECK ((kind = ANY (ARRAY['email'::text, 'webhook'::text])))
  constraint an_effect_is_resolved_in_a_known_way CHECK ((resolution = ANY (ARRAY['sent'::text, 'dropped'::text])))
  constraint an_effect_message_is_bounded CHECK ((length(error_message) <= 4000))
  constraint an_uncertain_effect_has_a_policy CHECK ((on_uncertain = ANY (ARRAY['hold'::text, 'resend'::text, 'drop'::text])))
  constraint doubt_has_a_beginning CHECK (((first_sent_at IS NOT NULL) OR (NOT in_doubt)))
  constraint effect_pkey PRIMARY KEY (id)
  constraint sending_means_leased CHECK (((state = 'sending'::text) = (lease_until IS NOT NULL)))
  CREATE UNIQUE INDEX an_action_is_made_once ON public.effect USING btree (run_id, action_id)
  CREATE INDEX effect_due ON public.effect USING btree (kind, tenant_id, next_attempt_at) WHERE (state = 'pending'::text)
  CREATE INDEX effect_lapsed ON public.effect USING btree (lease_until) WHERE (state = 'sending'::text)
  CREATE INDEX effect_of_tenant ON public.effect USING btree (tenant_id, id DESC)
  CREATE INDEX effect_open ON public.effect USING btree (state, kind, next_attempt_at) WHERE (state = ANY (ARRAY['pending'::text, 'uncertain'::text]))
  CREATE INDEX effect_pins ON public.effect USING btree (object_id) WHERE ((object_id IS NOT NULL) AND (state = ANY (ARRAY['pending'::text, 'sending'::text, 'uncertain'::text])))
  CREATE UNIQUE INDEX effect_pkey ON public.effect USING btree (id)

table effect_attempt
  column effect_id uuid not null
  column n integer not null
  column fence bigint not null
  column started_at timestamp with time zone not null
  column ended_at timestamp with time zone
  column outcome text
  column external_id text
  column error_message text
  column sender text not null
  constraint an_effect_attempt_ends_in_a_known_way CHECK ((outcome = ANY (ARRAY['sent'::text, 'refused'::text, 'unknown'::text, 'lapsed'::text, 'not-sent'::text])))
  constraint an_effect_attempt_message_is_bounded CHECK ((length(error_message) <= 4000))
  constraint an_ended_effect_attempt_has_an_outcome CHECK (((ended_at IS NULL) = (outcome IS NULL)))
  constraint effect_attempt_pkey PRIMARY KEY (effect_id, n)
  CREATE UNIQUE INDEX effect_attempt_pkey ON public.effect_attempt USING btree (effect_id, n)

table email_template
  column tenant_id uuid not null
  column name text not null
  column version integer not null default 1
  column subject text not null
  column text text not null
  column html text
  column updated_at timestamp with time zone not null
  column updated_by text not null
  constraint an_email_template_counts_from_1 CHECK ((version >= 1))
  constraint an_email_template_has_a_name CHECK ((name ~ '^[a-z0-9][a-z0-9-]{0,39}$'::text))
  constraint email_template_pkey PRIMARY KEY (tenant_id, name)
  constraint email_template_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX email_template_pkey ON public.email_template USING btree (tenant_id, name)

sequence fence_seq as bigint start 1 increment 1 cache 1

table history_floor
  column only_row boolean not null default true
  column floor_at timestamp with time zone not null
  constraint history_floor_pkey PRIMARY KEY (only_row)
  constraint there_is_one_floor CHECK (only_row)
  CREATE UNIQUE INDEX history_floor_pkey ON public.history_floor USING btree (only_row)

CREATE OR REPLACE FUNCTION public.instant_of(id uuid)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN to_timestamp((((((((((get_byte(uuid_send(id), 0))::bigint << 40) | ((get_byte(uuid_send(id), 1))::bigint << 32)) | ((get_byte(uuid_send(id), 2))::bigint << 24)) | ((get_byte(uuid_send(id), 3) << 16))::bigint) | ((get_byte(uuid_send(id), 4) << 8))::bigint) | (get_byte(uuid_send(id), 5))::bigint))::double precision / (1000.0)::double precision))

CREATE OR REPLACE FUNCTION public.keep_chain_start()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into chain (schedule_id, n, started_at, reason, revision, prev_last_at, prev_next_at, prev_fault)
  select new.schedule_id, coalesce(max(n), 0) + 1, new.chain_started_at, new.chain_reason, new.revision,
         case when tg_op = 'UPDATE' then old.last_nominal_at end,
         case when tg_op = 'UPDATE' then old.next_run_at end,
         case when tg_op = 'UPDATE' then old.fault end
    from chain where schedule_id = new.schedule_id;
  return null;
end $function$

table live_run with (autovacuum_vacuum_cost_delay=1, autovacuum_vacuum_scale_factor=0.05, fillfactor=50)
  column id uuid not null
  column scheduled_at timestamp with time zone not null
  column schedule_id uuid
  column tenant_id uuid not null
  column class text not null
  column lane smallint not null
  column revision integer
  column state text not null
  column guard uuid
  column not_before timestamp with time zone not null
  column due_at timestamp with time zone not null
  column admitted_at timestamp with time zone not null
  column started_at timestamp with time zone
  column start_deadline timestamp with time zone
  column attempt integer not null default 0
  column budget_from timestamp with time zone not null
  column budget_attempt integer not null default 0
  column interruptions integer not null default 0
  column expiries integer not null default 0
  column held_by text not null default 'none'::text
  column fence bigint
  column claim_id uuid
  column worker text
  column lease_until timestamp with time zone
  column last_heartbeat_at timestamp with time zone
  column deadline_at timestamp with time zone
  column cancel_requested_at timestamp with time zone
  column own_work boolean not null default false
  column tells_end boolean not null default false
  column pauses_on_failure boolean not null default false
  column content uuid
  column has_effects boolean not null default false
  constraint a_lane_is_strict_normal_or_late CHECK ((lane = ANY (ARRAY[0, 1, 2])))
  constraint a_live_run_is_in_a_known_state CHECK ((state = ANY (ARRAY['queued'::text, 'blocked'::text, 'running'::text, 'retrying'::text])))
  constraint a_run_is_held_by_a_known_cause CHECK ((held_by = ANY (ARRAY['none'::text, 'overlap'::text, 'tenant-limit'::text, 'rate'::text, 'replay'::text, 'pause'::text, 'suspended'::text])))
  constraint a_started_run_had_an_attempt CHECK (((attempt > 0) OR (started_at IS NULL)))
  constraint live_run_pkey PRIMARY KEY (id)
  constraint only_a_blocked_run_has_no_guard CHECK (((state = 'blocked'::text) = (guard IS NULL)))
  constraint running_means_leased CHECK ((((state = 'running'::text) = (lease_until IS NOT NULL)) AND ((state = 'running'::text) = (fence IS NOT NULL)) AND ((state = 'running'::text) = (claim_id IS NOT NULL)) AND ((state = 'running'::text) = (deadline_at IS NOT NULL))))
  CREATE UNIQUE INDEX live_run_guard ON public.live_run USING btree (guard)
  CREATE INDEX live_run_of_class ON public.live_run USING btree (tenant_id, class, scheduled_at)
  CREATE INDEX live_run_of_schedule ON public.live_run USING btree (schedule_id, scheduled_at)
  CREATE UNIQUE INDEX live_run_pkey ON public.live_run USING btree (id)

CREATE OR REPLACE FUNCTION public.name_remote_job()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  found jsonb;
begin
  select coalesce(r.job::jsonb -> 'job', v.definition::jsonb -> 'job') into found
    from live_run l
    left join run r on l.own_work and r.scheduled_at = l.scheduled_at and r.id = l.id
    left join schedule_revision v on v.schedule_id = l.schedule_id and v.revision = l.revision
   where l.id = new.runs[1];
  new.job := (found ->> 'name') || '@' || coalesce(found ->> 'version', '1');
  return new;
end
$function$

table object
  column id uuid not null
  column tenant_id uuid not null
  column run_id uuid not null
  column attempt integer not null
  column fence bigint not null
  column name text not null
  column state text not null
  column uri text not null
  column version text
  column sha256 text
  column size bigint
  column media_type text not null
  column granted_until timestamp with time zone not null
  column pin_until timestamp with time zone
  column created_at timestamp with time zone not null default clock_timestamp()
  column referenced_at timestamp with time zone
  column deleting_at timestamp with time zone
  column deleted_at timestamp with time zone
  column clean_at timestamp with time zone
  column clean_tries integer not null default 0
  column kind text not null default 'output'::text
  constraint a_sha256_is_64_hex_digits CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
  constraint a_staged_object_was_verified CHECK (((state = 'granted'::text) OR (state = ANY (ARRAY['deleting'::text, 'deleted'::text])) OR ((sha256 IS NOT NULL) AND (size IS NOT NULL))))
  constraint an_object_is_in_a_known_state CHECK ((state = ANY (ARRAY['granted'::text, 'staged'::text, 'referenced'::text, 'deleting'::text, 'deleted'::text])))
  constraint an_object_is_of_a_known_kind CHECK ((kind = ANY (ARRAY['output'::text, 'log'::text]))) NOT VALID
  constraint object_pkey PRIMARY KEY (id)
  constraint what_goes_is_looked_after CHECK (((state <> ALL (ARRAY['deleting'::text, 'deleted'::text])) OR ((deleting_at IS NOT NULL) AND (clean_at IS NOT NULL))))
  constraint what_has_gone_has_a_time CHECK (((state <> 'deleted'::text) OR (deleted_at IS NOT NULL)))
  CREATE INDEX object_going ON public.object USING btree (clean_at) WHERE (state = ANY (ARRAY['deleting'::text, 'deleted'::text]))
  CREATE INDEX object_kept ON public.object USING btree (referenced_at) WHERE (state = 'referenced'::text)
  CREATE INDEX object_of_run ON public.object USING btree (run_id)
  CREATE UNIQUE INDEX object_pkey ON public.object USING btree (id)
  CREATE INDEX object_to_clean ON public.object USING btree (state, created_at) WHERE (state = ANY (ARRAY['granted'::text, 'staged'::text, 'deleting'::text]))

table operation
  column id uuid not null
  column tenant_id uuid not null
  column schedule_id uuid
  column kind text not null
  column state text not null default 'pending'::text
  column arguments jsonb not null
  column cursor jsonb
  column done bigint not null default 0
  column failed bigint not null default 0
  column total bigint
  column pace_per_second integer
  column actor text not null
  column reason text
  column created_at timestamp with time zone not null default clock_timestamp()
  column updated_at timestamp with time zone not null default clock_timestamp()
  column finished_at timestamp with time zone
  column next_step_at timestamp with time zone not null default clock_timestamp()
  column tries integer not null default 0
  column tally jsonb not null default '{}'::jsonb
  column message text
  constraint an_operation_counts_from_nothing CHECK (((done >= 0) AND (failed >= 0) AND ((total IS NULL) OR (total >= 0))))
  constraint an_operation_has_an_end CHECK (((finished_at IS NULL) = (state = ANY (ARRAY['pending'::text, 'working'::text]))))
  constraint an_operation_is_in_a_known_state CHECK ((state = ANY (ARRAY['pending'::text, 'working'::text, 'done'::text, 'canceled'::text, 'failed'::text])))
  constraint an_operation_message_is_bounded CHECK ((length(message) <= 4000))
  constraint an_operation_pace_is_positive CHECK ((pace_per_second > 0))
  constraint operation_pkey PRIMARY KEY (id)
  CREATE INDEX operation_due ON public.operation USING btree (tenant_id, next_step_at) WHERE (state = ANY (ARRAY['pending'::text, 'working'::text]))
  CREATE INDEX operation_of_tenant ON public.operation USING btree (tenant_id, id DESC)
  CREATE INDEX operation_open ON public.operation USING btree (created_at) WHERE (state = ANY (ARRAY['pending'::text, 'working'::text]))
  CREATE UNIQUE INDEX operation_pkey ON public.operation USING btree (id)

table outbox with (autovacuum_vacuum_cost_delay=1, autovacuum_vacuum_scale_factor=0.05, fillfactor=80)
  column id bigint not null identity always
  column kind text not null
  column tenant_id uuid not null
  column class text not null
  column lane smallint not null
  column available_at timestamp with time zone not null
  column runs uuid[] not null
  column published_at timestamp with time zone
  column publish_no integer not null default 0
  column schedule_id uuid
  column job text
  constraint a_published_row_has_a_number CHECK (((published_at IS NULL) OR (publish_no >= 1)))
  constraint a_remote_row_names_one_run_and_its_job CHECK (((kind <> 'run'::text) OR (class <> 'remote'::text) OR ((cardinality(runs) = 1) AND (job IS NOT NULL) AND (published_at IS NULL))))
  constraint an_end_is_told_to_a_schedule CHECK (((kind = 'schedule'::text) = (schedule_id IS NOT NULL)))
  constraint an_intent_is_of_a_known_kind CHECK ((kind = ANY (ARRAY['run'::text, 'effect'::text, 'schedule'::text])))
  constraint an_outbox_lane_is_known CHECK ((lane = ANY (ARRAY[0, 1, 2])))
  constraint an_outbox_row_names_1_to_32_runs CHECK (((cardinality(runs) >= 1) AND (cardinality(runs) <= 32)))
  constraint outbox_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (id)
  CREATE INDEX outbox_published ON public.outbox USING btree (published_at) WHERE (published_at IS NOT NULL)
  CREATE INDEX outbox_remote ON public.outbox USING btree (tenant_id, job, lane, available_at, id) WHERE ((kind = 'run'::text) AND (class = 'remote'::text))
  CREATE INDEX outbox_unpublished ON public.outbox USING btree (kind, class, tenant_id, lane, available_at, id) WHERE (published_at IS NULL)
  CREATE TRIGGER outbox_names_remote_job BEFORE INSERT ON public.outbox FOR EACH ROW WHEN (((new.kind = 'run'::text) AND (new.class = 'remote'::text))) EXECUTE FUNCTION name_remote_job()

sequence outbox_id_seq as bigint start 1 increment 1 cache 1

table quota
  column tenant_id uuid not null
  column class text not null
  column max_running integer
  column start_rate_per_second integer
  column weight integer not null default 1
  column version bigint not null default 1
  column on_infeasible text not null default 'warn'::text
  constraint a_running_limit_is_not_negative CHECK ((max_running >= 0))
  constraint a_start_rate_is_positive CHECK ((start_rate_per_second > 0))
  constraint a_weight_is_between_1_and_1000 CHECK (((weight >= 1) AND (weight <= 1000)))
  constraint quota_pkey PRIMARY KEY (tenant_id, class)
  constraint quota_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id)
  constraint what_is_infeasible_is_treated_in_a_known_way CHECK ((on_infeasible = ANY (ARRAY['accept'::text, 'warn'::text, 'refuse'::text])))
  CREATE UNIQUE INDEX quota_pkey ON public.quota USING btree (tenant_id, class)

table recovery
  column epoch integer not null
  column recovered_at timestamp with time zone not null
  column finished_at timestamp with time zone
  column actor text not null
  column reason text not null
  column findings jsonb not null
  column tally jsonb not null default '{}'::jsonb
  column nothing_lost boolean not null default false
  constraint recovery_pkey PRIMARY KEY (epoch)
  CREATE UNIQUE INDEX recovery_pkey ON public.recovery USING btree (epoch)

CREATE OR REPLACE FUNCTION public.refuse_to_rewrite_audit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' or coalesce(current_setting('punctual.retention', true), '') <> 'on' then
    raise exception 'audit events are append-only; only retention deletes them'
      using errcode = 'insufficient_privilege', table = tg_table_name;
  end if;
  return old;
end
$function$

table request_key
  column scope uuid not null
  column key text not null
  column request_sha256 bytea not null
  column subject uuid not null
  column answer jsonb
  column created_at timestamp with time zone not null default clock_timestamp()
  constraint a_request_is_known_by_its_hash CHECK ((length(request_sha256) = 32))
  constraint a_request_key_is_short CHECK (((length(key) >= 1) AND (length(key) <= 255)))
  constraint request_key_pkey PRIMARY KEY (scope, key)
  CREATE INDEX request_key_age ON public.request_key USING btree (created_at)
  CREATE UNIQUE INDEX request_key_pkey ON public.request_key USING btree (scope, key)

table retired_partition
  column name text not null
  column from_at timestamp with time zone not null
  column to_at timestamp with time zone not null
  column retired_at timestamp with time zone not null default clock_timestamp()
  constraint retired_partition_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX retired_partition_pkey ON public.retired_partition USING btree (name)

table rollup with (fillfactor=80)
  column tenant_id uuid not null
  column minutes smallint not null
  column class text not null
  column at timestamp with time zone not null
  column started integer not null
  column succeeded integer not null
  column failed integer not null
  column canceled integer not null
  column skipped integer not null
  column retried integer not null
  column lateness integer[] not null
  constraint a_lateness_histogram_has_17_buckets CHECK ((cardinality(lateness) = 17))
  constraint a_rollup_begins_where_its_time_does CHECK ((mod(EXTRACT(epoch FROM at), ((minutes * 60))::numeric) = (0)::numeric))
  constraint a_rollup_is_of_a_minute_or_an_hour CHECK ((minutes = ANY (ARRAY[1, 60])))
  constraint rollup_pkey PRIMARY KEY (tenant_id, minutes, class, at)
  CREATE INDEX rollup_age ON public.rollup USING btree (minutes, at)
  CREATE UNIQUE INDEX rollup_pkey ON public.rollup USING btree (tenant_id, minutes, class, at)

table rollup_delta with (autovacuum_vacuum_cost_delay=1, autovacuum_vacuum_scale_factor=0.05)
  column at timestamp with time zone not null
  column tenant_id uuid not null
  column class text not null
  column started integer not null default 0
  column succeeded integer not null default 0
  column failed integer not null default 0
  column canceled integer not null default 0
  column skipped integer not null default 0
  column retried integer not null default 0
  column lateness smallint[] not null default '{}'::smallint[]
  CREATE INDEX rollup_delta_age ON public.rollup_delta USING btree (at)

partitioned table run by RANGE (scheduled_at)
  column id uuid not null
  column scheduled_at timestamp with time zone not null
  column schedule_id uuid
  column tenant_id uuid not null
  column class text not null
  column due_at timestamp with time zone not null
  column admitted_at timestamp with time zone not null
  column materialized_at timestamp with time zone not null
  column prev_scheduled_at timestamp with time zone
  column revision integer
  column trigger text not null
  column state text not null
  column skip_reason text
  column attempts integer not null default 0
  column accepted_fence bigint
  column started_at timestamp with time zone
  column finished_at timestamp with time zone
  column job jsonb
  column payload jsonb
  column result_uri text
  column result_version text
  column result_sha256 text
  column result_size bigint
  column result_media_type text
  column result_object uuid
  column cancel_requested_at timestamp with time zone
  column cancel_accepted_at timestamp with time zone
  column error_code text
  column error_message text
  constraint a_canceled_run_was_accepted_as_canceled CHECK (((state = 'canceled'::text) = (cancel_accepted_at IS NOT NULL)))
  constraint a_result_is_whole CHECK ((((result_uri IS NULL) = (result_sha256 IS NULL)) AND ((result_uri IS NULL) = (result_size IS NULL))))
  constraint a_run_has_a_revision_or_its_own_job CHECK (((revision IS NOT NULL) OR (job IS NOT NULL)))
  constraint a_run_id_carries_its_nominal_instant CHECK ((scheduled_at = instant_of(id)))
  constraint a_run_is_in_a_known_state CHECK ((state = ANY (ARRAY['open'::text, 'succeeded'::text, 'failed'::text, 'canceled'::text, 'skipped'::text])))
  constraint a_run_is_triggered_by_a_known_cause CHECK ((trigger = ANY (ARRAY['schedule'::text, 'manual'::text, 'backfill'::text, 'catch-up'::text, 'api'::text])))
  constraint a_skip_has_a_reason CHECK (((state = 'skipped'::text) = (skip_reason IS NOT NULL)))
  constraint an_ended_run_has_an_end CHECK (((state = 'open'::text) = (finished_at IS NULL)))
  constraint an_error_message_is_bounded CHECK ((length(error_message) <= 4000))
  constraint only_success_has_a_result CHECK (((result_uri IS NULL) OR (state = 'succeeded'::text)))
  constraint run_pkey PRIMARY KEY (scheduled_at, id)
  constraint success_was_accepted_from_a_fence CHECK (((state <> 'succeeded'::text) OR (accepted_fence IS NOT NULL)))
  CREATE INDEX run_of_schedule ON ONLY public.run USING btree (schedule_id, scheduled_at DESC, id DESC)
  CREATE INDEX run_of_tenant ON ONLY public.run USING btree (tenant_id, scheduled_at DESC, id DESC)
  CREATE UNIQUE INDEX run_pkey ON ONLY public.run USING btree (scheduled_at, id)

table scanner
  column id uuid not null
  column epoch bigint not null default 1
  column started_at timestamp with time zone not null default clock_timestamp()
  column expires_at timestamp with time zone not null
  constraint scanner_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX scanner_pkey ON public.scanner USING btree (id)

table schedule
  column id uuid not null
  column tenant_id uuid not null
  column bucket smallint not null generated bucket_of(id)
  column key text
  column name text not null
  column labels jsonb not null default '{}'::jsonb
  column managed_by text
  column status text not null default 'active'::text
  column revision integer not null default 1
  column notes text
  column created_at timestamp with time zone not null
  column updated_at timestamp with time zone not null
  constraint a_revision_counts_from_1 CHECK ((revision >= 1))
  constraint a_schedule_has_a_known_status CHECK ((status = ANY (ARRAY['active'::text, 'paused'::text, 'finished'::text, 'deleted'::text])))
  constraint a_schedule_key_is_short CHECK (((length(key) >= 1) AND (length(key) <= 200)))
  constraint a_schedule_name_is_short CHECK (((length(name) >= 1) AND (length(name) <= 200)))
  constraint schedule_pkey PRIMARY KEY (id)
  CREATE INDEX schedule_kept ON public.schedule USING btree (tenant_id) WHERE (status <> 'deleted'::text)
  CREATE UNIQUE INDEX schedule_key ON public.schedule USING btree (tenant_id, key) WHERE ((key IS NOT NULL) AND (status <> 'deleted'::text))
  CREATE INDEX schedule_of_tenant ON public.schedule USING btree (tenant_id, id DESC)
  CREATE UNIQUE INDEX schedule_pkey ON public.schedule USING btree (id)

table schedule_cursor with (fillfactor=70)
  column schedule_id uuid not null
  column bucket smallint not null generated bucket_of(schedule_id)
  column tenant_id uuid not null
  column revision integer not null
  column next_run_at timestamp with time zone
  column next_due_at timestamp with time zone
  column chain_started_at timestamp with time zone not null
  column chain_reason text not null default 'created'::text
  column last_nominal_at timestamp with time zone
  column last_nominal_local text
  column runs_made bigint not null default 0
  column tz_version text not null
  column parser_version smallint not null
  column calendar_version integer
  column fault text
  column fault_retry_at timestamp with time zone
  column catch_up_until timestamp with time zone
  column caught_up integer not null default 0
  column catch_up_reason text
  column awaits_end boolean not null default false
  column content uuid
  constraint a_catch_up_is_told_whole CHECK (((catch_up_until IS NULL) = (catch_up_reason IS NULL)))
  constraint a_chain_starts_for_a_known_reason CHECK ((chain_reason = ANY (ARRAY['created'::text, 'revised'::text, 'resumed'::text, 'adopted'::text])))
  constraint a_due_cursor_has_a_nominal_instant CHECK (((next_due_at IS NULL) OR (next_run_at IS NOT NULL)))
  constraint catching_up_counts_from_nothing CHECK ((caught_up >= 0))
  constraint schedule_cursor_pkey PRIMARY KEY (schedule_id)
  constraint who_awaits_an_end_knows_no_instant CHECK (((NOT awaits_end) OR (next_run_at IS NULL)))
  CREATE INDEX schedule_cursor_awaiting ON public.schedule_cursor USING btree (schedule_id) WHERE awaits_end
  CREATE INDEX schedule_cursor_due ON public.schedule_cursor USING btree (next_due_at, bucket) WHERE (next_due_at IS NOT NULL)
  CREATE INDEX schedule_cursor_fault ON public.schedule_cursor USING btree (fault_retry_at) WHERE (fault IS NOT NULL)
  CREATE UNIQUE INDEX schedule_cursor_pkey ON public.schedule_cursor USING btree (schedule_id)
  CREATE TRIGGER a_first_chain_is_kept AFTER INSERT ON public.schedule_cursor FOR EACH ROW EXECUTE FUNCTION keep_chain_start()
  CREATE TRIGGER a_new_chain_is_kept AFTER UPDATE OF chain_started_at ON public.schedule_cursor FOR EACH ROW WHEN ((old.chain_started_at IS DISTINCT FROM new.chain_started_at)) EXECUTE FUNCTION keep_chain_start()

table schedule_revision
  column schedule_id uuid not null
  column revision integer not null
  column actor text not null
  column created_at timestamp with time zone not null
  column definition json not null
  column payload json not null
  column content uuid
  constraint schedule_revision_pkey PRIMARY KEY (schedule_id, revision)
  CREATE UNIQUE INDEX schedule_revision_pkey ON public.schedule_revision USING btree (schedule_id, revision)

table signing_key
  column id uuid not null
  column tenant_id uuid not null
  column label text not null
  column sealed text
  column created_at timestamp with time zone not null
  column created_by text not null
  column active_until timestamp with time zone
  column revoked_at timestamp with time zone
  column rotated_from uuid
  column replaced_by uuid
  constraint a_replaced_signing_key_ends CHECK (((replaced_by IS NULL) OR (active_until IS NOT NULL)))
  constraint a_revoked_signing_key_is_kept_by_nobody CHECK (((sealed IS NULL) = (revoked_at IS NOT NULL)))
  constraint signing_key_pkey PRIMARY KEY (id)
  constraint signing_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id) ON DELETE CASCADE
  CREATE INDEX signing_key_in_use ON public.signing_key USING btree (tenant_id) WHERE (revoked_at IS NULL)
  CREATE INDEX signing_key_of_tenant ON public.signing_key USING btree (tenant_id, id DESC)
  CREATE UNIQUE INDEX signing_key_pkey ON public.signing_key USING btree (id)

table skip_range
  column schedule_id uuid not null
  column from_at timestamp with time zone not null
  column to_at timestamp with time zone not null
  column tenant_id uuid not null
  column revision integer not null
  column reason text not null
  column instants bigint
  column prev_scheduled_at timestamp with time zone
  column created_at timestamp with time zone not null
  column backfilled bigint not null default 0
  constraint a_backfill_stays_within_its_range CHECK (((backfilled >= 0) AND ((instants IS NULL) OR (backfilled <= instants))))
  constraint a_counted_range_is_not_empty CHECK (((instants IS NULL) OR (instants >= 1)))
  constraint a_range_runs_forward CHECK ((to_at >= from_at))
  constraint skip_range_pkey PRIMARY KEY (schedule_id, from_at)
  CREATE UNIQUE INDEX skip_range_pkey ON public.skip_range USING btree (schedule_id, from_at)
  CREATE INDEX skip_range_uncounted ON public.skip_range USING btree (created_at) WHERE (instants IS NULL)

table tenant
  column id uuid not null
  column name text not null
  column status text not null default 'active'::text
  column created_at timestamp with time zone not null default clock_timestamp()
  column allowed_jobs text[]
  column outbound jsonb
  constraint a_tenant_is_active_or_suspended CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text])))
  constraint a_tenant_name_is_short CHECK (((length(name) >= 1) AND (length(name) <= 200)))
  constraint allowed_jobs_are_named CHECK ((array_position(allowed_jobs, NULL::text) IS NULL))
  constraint tenant_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX tenant_name ON public.tenant USING btree (name)
  CREATE UNIQUE INDEX tenant_pkey ON public.tenant USING btree (id)
  CREATE INDEX tenant_suspended ON public.tenant USING btree (id) WHERE (status = 'suspended'::text)

table tenant_data_key
  column tenant_id uuid not null
  column id uuid not null
  column wrapped bytea not null
  column master_key_id text not null
  column created_at timestamp with time zone not null default clock_timestamp()
  column retired_at timestamp with time zone
  constraint a_data_key_is_wrapped CHECK ((length(wrapped) = 60))
  constraint a_master_key_id_is_short CHECK (((length(master_key_id) >= 1) AND (length(master_key_id) <= 40)))
  constraint tenant_data_key_pkey PRIMARY KEY (tenant_id, id)
  constraint tenant_data_key_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX tenant_data_key_in_use ON public.tenant_data_key USING btree (tenant_id) WHERE (retired_at IS NULL)
  CREATE UNIQUE INDEX tenant_data_key_pkey ON public.tenant_data_key USING btree (tenant_id, id)

table tenant_day with (fillfactor=50)
  column tenant_id uuid not null
  column day date not null
  column requested_runs integer not null
  constraint nobody_asks_for_less_than_nothing CHECK ((requested_runs >= 0))
  constraint tenant_day_pkey PRIMARY KEY (tenant_id)
  constraint tenant_day_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id)
  CREATE UNIQUE INDEX tenant_day_pkey ON public.tenant_day USING btree (tenant_id)

table tenant_quota
  column tenant_id uuid not null
  column schedules integer
  column min_interval_ms bigint
  column payload_bytes integer
  column queued_runs integer
  column requested_runs_per_day integer
  column api_rate_per_second integer
  column api_burst integer not null
  column version integer not null default 1
  constraint a_tenant_quota_is_not_negative CHECK (((schedules >= 0) AND (min_interval_ms >= 0) AND (payload_bytes >= 0) AND (queued_runs >= 0) AND (requested_runs_per_day >= 0) AND (api_burst >= 0)))
  constraint an_api_rate_is_positive CHECK ((api_rate_per_second > 0))
  constraint tenant_quota_pkey PRIMARY KEY (tenant_id)
  constraint tenant_quota_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id)
  CREATE UNIQUE INDEX tenant_quota_pkey ON public.tenant_quota USING btree (tenant_id)

table tz_data
  column version text not null
  column sha256 bytea not null
  column bytes bytea not null
  column adopted_at timestamp with time zone
  column replanned_at timestamp with time zone
  constraint a_sha256_has_32_bytes CHECK ((length(sha256) = 32))
  constraint only_an_adopted_version_is_replanned CHECK (((replanned_at IS NULL) OR (adopted_at IS NOT NULL)))
  constraint tz_data_pkey PRIMARY KEY (version)
  CREATE UNIQUE INDEX tz_data_pkey ON public.tz_data USING btree (version)

table usage with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=30)
  column tenant_id uuid not null
  column class text not null
  column running integer not null default 0
  column max_running integer
  column start_rate_per_second integer
  column starts_window_at timestamp with time zone
  column starts_in_window integer not null default 0
  constraint nobody_runs_less_than_nothing CHECK ((running >= 0))
  constraint usage_pkey PRIMARY KEY (tenant_id, class)
  CREATE UNIQUE INDEX usage_pkey ON public.usage USING btree (tenant_id, class)

table webhook_delivery with (fillfactor=80)
  column id bigint not null identity always
  column endpoint_id uuid not null
  column tenant_id uuid not null
  column type text not null
  column run_id uuid
  column n integer not null
  column facts jsonb not null
  column occurred_at timestamp with time zone not null
  column state text not null default 'pending'::text
  column next_attempt_at timestamp with time zone not null
  column attempts integer not null default 0
  column budget_attempts integer not null default 0
  column budget_from timestamp with time zone not null
  column claim_id uuid
  column answer_status integer
  column message text
  column settled_at timestamp with time zone
  constraint a_delivery_being_sent_is_claimed CHECK (((state <> 'sending'::text) OR (claim_id IS NOT NULL)))
  constraint a_delivery_counts_its_attempts CHECK (((attempts >= budget_attempts) AND (budget_attempts >= 0)))
  constraint a_delivery_is_in_a_known_state CHECK ((state = ANY (ARRAY['pending'::text, 'sending'::text, 'delivered'::text, 'failed'::text])))
  constraint a_delivery_message_is_bounded CHECK ((length(message) <= 4000))
  constraint a_settled_delivery_has_a_time CHECK (((settled_at IS NOT NULL) = (state = ANY (ARRAY['delivered'::text, 'failed'::text]))))
  constraint webhook_delivery_pkey PRIMARY KEY (id)
  CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (tenant_id, next_attempt_at) WHERE (settled_at IS NULL)
  CREATE INDEX webhook_delivery_of_endpoint ON public.webhook_delivery USING btree (endpoint_id, id DESC)
  CREATE UNIQUE INDEX webhook_delivery_once ON public.webhook_delivery USING btree (endpoint_id, type, run_id, n)
  CREATE INDEX webhook_delivery_open ON public.webhook_delivery USING btree (next_attempt_at) WHERE (settled_at IS NULL)
  CREATE UNIQUE INDEX webhook_delivery_pkey ON public.webhook_delivery USING btree (id)

sequence webhook_delivery_id_seq as bigint start 1 increment 1 cache 1

table webhook_endpoint with (fillfactor=70)
  column id uuid not null
  column tenant_id uuid not null
  column url text not null
  column description text
  column events text[] not null
  column schedule_ids uuid[]
  column late_after_ms integer not null default 60000
  column status text not null default 'enabled'::text
  column disabled_at timestamp with time zone
  column disabled_reason text
  column failures integer not null default 0
  column failing_since timestamp with time zone
  column last_delivered_at timestamp with time zone
  column created_at timestamp with time zone not null
  column created_by text not null
  constraint a_disabled_webhook_says_why CHECK (((status = 'disabled'::text) = ((disabled_at IS NOT NULL) AND (disabled_reason IS NOT NULL))))
  constraint a_webhook_hears_of_something CHECK ((cardinality(events) > 0))
  constraint a_webhook_is_in_a_known_status CHECK ((status = ANY (ARRAY['enabled'::text, 'disabled'::text])))
  constraint failures_have_a_beginning CHECK (((failures > 0) = (failing_since IS NOT NULL)))
  constraint lateness_takes_time CHECK ((late_after_ms >= 1000))
  constraint webhook_endpoint_pkey PRIMARY KEY (id)
  constraint webhook_endpoint_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenant(id) ON DELETE CASCADE
  CREATE INDEX webhook_endpoint_of_tenant ON public.webhook_endpoint USING btree (tenant_id, id DESC)
  CREATE UNIQUE INDEX webhook_endpoint_pkey ON public.webhook_endpoint USING btree (id)
  CREATE INDEX webhook_endpoint_told ON public.webhook_endpoint USING btree (tenant_id) WHERE (status = 'enabled'::text)

table worker
  column id uuid not null
  column name text not null
  column slots jsonb not null
  column version text not null
  column started_at timestamp with time zone not null
  column seen_at timestamp with time zone not null
  column stopping boolean not null default false
  column blocked_at timestamp with time zone
  column blocked_ms integer
  column tenant_id uuid
  column jobs text[]
  column concurrency integer
  constraint worker_pkey PRIMARY KEY (id)
  CREATE INDEX worker_of_tenant ON public.worker USING btree (tenant_id) WHERE (tenant_id IS NOT NULL)
  CREATE UNIQUE INDEX worker_pkey ON public.worker USING btree (id)
