-- why:      after a version of the tz database is adopted, schedules planned by another are walked once; this says that it is done
-- locks:    tz_data for an instant (it has a handful of rows)
-- breaking: no

alter table tz_data
  add column replanned_at timestamptz,
  add constraint only_an_adopted_version_is_replanned check (replanned_at is null or adopted_at is not null);
