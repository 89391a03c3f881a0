-- why:      operations keep their pace, are tried again, and say what they wait for; backfills tell which instants of a
--           skipped range have become runs since, so that the ledger counts none of them twice
-- locks:    skip_range for an instant (its constant default rewrites nothing; the check reads it once); operation is
--           rewritten and indexed, but no earlier program wrote to it
-- breaking: no

alter table operation
  add column next_step_at timestamptz not null default clock_timestamp(),
  add column tries integer not null default 0,
  add column tally jsonb not null default '{}',
  add column message text,
  add constraint an_operation_counts_from_nothing check (done >= 0 and failed >= 0 and (total is null or total >= 0)),
  add constraint an_operation_pace_is_positive check (pace_per_second > 0),
  add constraint an_operation_has_an_end check ((finished_at is null) = (state in ('pending', 'working'))),
  add constraint an_operation_message_is_bounded check (length(message) <= 4000);
create index operation_due on operation (tenant_id, next_step_at) where state in ('pending', 'working');
create index operation_of_tenant on operation (tenant_id, id desc);

-- Of the range's instants, those that a backfill has made runs. Their rows win: instants - backfilled are skipped still.
alter table skip_range
  add column backfilled bigint not null default 0,
  add constraint a_backfill_stays_within_its_range check (backfilled >= 0 and (instants is null or backfilled <= instants));
