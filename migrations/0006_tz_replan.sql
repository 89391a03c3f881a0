-- why:      after a version of the tz database is adopted, schedules planned by another are walked once; this says that it is done
-- locks:    tz_data for an instant (it has a handful of rows); the cursors of edited schedules that have not run since
-- breaking: no

alter table tz_data
  add column replanned_at timestamptz,
  add constraint only_an_adopted_version_is_replanned check (replanned_at is null or adopted_at is not null);

-- An edit used to leave the local time of the chain before; it says nothing of the new one.
update schedule_cursor set last_nominal_local = null where last_nominal_at is null and last_nominal_local is not null;
