-- why:      catch-up is spread over passes, so a cursor remembers how far it is; schedules hear of the ends of their runs
--           (afterCompletion, pauseOnFailure); ranges too long to count at once are found by whoever counts them later
-- locks:    schedule_cursor, outbox, live_run, skip_range for an instant each (constant defaults rewrite nothing), then one
--           read of each for its checks and of two for their indexes
-- breaking: no

alter table schedule_cursor
  add column catch_up_until timestamptz, -- missed instants before it are being caught up
  add column caught_up integer not null default 0, -- how many of them have run
  add column catch_up_reason text, -- why the others are skipped
  add column awaits_end boolean not null default false, -- the next instant follows from the end of a run
  add constraint a_catch_up_is_told_whole check ((catch_up_until is null) = (catch_up_reason is null)),
  add constraint catching_up_counts_from_nothing check (caught_up >= 0),
  add constraint who_awaits_an_end_knows_no_instant check (not awaits_end or next_run_at is null);
create index schedule_cursor_awaiting on schedule_cursor (schedule_id) where awaits_end;

alter table outbox
  add column schedule_id uuid,
  add constraint an_end_is_told_to_a_schedule check ((kind = 'schedule') = (schedule_id is not null));

alter table live_run
  add column tells_end boolean not null default false, -- its schedule hears of its end, however it ends
  add column pauses_on_failure boolean not null default false, -- if it fails, its schedule hears of it and is paused
  drop constraint a_run_is_held_by_a_known_cause,
  add constraint a_run_is_held_by_a_known_cause check (held_by in ('none', 'overlap', 'tenant-limit', 'rate', 'replay', 'pause'));

create index skip_range_uncounted on skip_range (created_at) where instants is null;
