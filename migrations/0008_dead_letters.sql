-- why:      dead letters are replayed and dismissed; what was decided about a run, by whom and why, stays on record when it
--           fails again; lists and bulk replays walk them in the order of their failures
-- locks:    dead_letter (a row for each run that failed for good) while its indexes are built; nothing is rewritten
-- breaking: no

alter table dead_letter add column error_code text;

-- Every decision about a dead letter, with the failure it was about: when the run fails again, its letter is a new one.
create table dead_letter_resolution (
  run_id uuid not null,
  n integer not null,
  failed_at timestamptz not null,
  failure text not null, -- why it was given up, as dead_letter.reason
  fingerprint text not null,
  attempts integer not null,
  error_code text,
  error_message text,
  resolution text not null,
  resolved_at timestamptz not null,
  resolved_by text not null,
  reason text,
  operation_id uuid,
  primary key (run_id, n),
  constraint resolutions_count_from_1 check (n >= 1),
  constraint a_resolution_is_a_known_one check (resolution in ('replayed', 'dismissed'))
);

-- In the order of failures, forwards for those who replay, backwards for those who look.
drop index dead_letter_open;
create index dead_letter_open on dead_letter (tenant_id, created_at, run_id) where resolved_at is null;
create index dead_letter_of_tenant on dead_letter (tenant_id, created_at, run_id);
drop index dead_letter_of_schedule;
create index dead_letter_of_schedule on dead_letter (schedule_id, created_at, run_id) where schedule_id is not null;
create index dead_letter_open_of_schedule on dead_letter (schedule_id, created_at, run_id)
  where schedule_id is not null and resolved_at is null;
create index dead_letter_open_since on dead_letter (created_at) where resolved_at is null;
create index dead_letter_resolved on dead_letter (resolved_at) where resolved_at is not null;
