-- why:      effects of accepted results are sent, tried again, held where nobody knows what came of them, and decided by
--           people; a run knows from birth whether it declares any, so that the end of one that does not costs nothing
-- locks:    live_run for an instant (a constant default rewrites nothing); effect and effect_attempt are changed and
--           indexed whole, but no earlier program wrote to them
-- breaking: no

alter table live_run add column has_effects boolean not null default false;

alter table effect
  add column name text not null,
  add column schedule_id uuid,
  add column next_attempt_at timestamptz not null default clock_timestamp(),
  add column budget_from timestamptz not null default clock_timestamp(),
  add column budget_attempts integer not null default 0,
  -- An earlier attempt may have reached the other side: from here on nobody may say that it did not happen.
  add column in_doubt boolean not null default false,
  add column claim_id uuid,
  add column resolved_by text,
  add constraint an_effect_is_of_a_known_kind check (kind in ('email', 'webhook')),
  add constraint an_effect_is_resolved_in_a_known_way check (resolution in ('sent', 'dropped')),
  add constraint a_resolved_effect_says_how check ((state = 'resolved') = (resolution is not null)),
  add constraint a_settled_effect_has_a_time check ((settled_at is not null) = (state in ('sent', 'failed', 'resolved'))),
  add constraint a_sending_effect_is_claimed check (state <> 'sending' or (fence is not null and claim_id is not null)),
  add constraint doubt_has_a_beginning check (first_sent_at is not null or not in_doubt),
  add constraint an_effect_counts_its_attempts check (attempts >= budget_attempts and budget_attempts >= 0),
  add constraint an_effect_message_is_bounded check (length(error_message) <= 4000);

drop index effect_unsettled;
create index effect_due on effect (kind, tenant_id, next_attempt_at) where state = 'pending';
create index effect_open on effect (state, kind, next_attempt_at) where state in ('pending', 'uncertain');
create index effect_lapsed on effect (lease_until) where state = 'sending';
-- What is not settled pins its object.
create index effect_pins on effect (object_id) where object_id is not null and state in ('pending', 'sending', 'uncertain');
create index effect_of_tenant on effect (tenant_id, id desc);

alter table effect_attempt
  add column sender text not null,
  drop constraint an_effect_attempt_ends_in_a_known_way,
  add constraint an_effect_attempt_ends_in_a_known_way check (outcome in ('sent', 'refused', 'unknown', 'lapsed', 'not-sent')),
  add constraint an_ended_effect_attempt_has_an_outcome check ((ended_at is null) = (outcome is null)),
  add constraint an_effect_attempt_message_is_bounded check (length(error_message) <= 4000);
