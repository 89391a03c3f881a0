-- why:      which version of a calendar is in force, which schedules use it, and who wrote a version
-- locks:    calendar for an instant; no earlier program wrote to it
-- breaking: no

alter table calendar add column actor text not null default 'unknown';

-- The version in force, and the calendar's lock. Gone when the calendar is deleted; its versions stay.
create table calendar_head (
  tenant_id uuid not null,
  name text not null,
  version integer not null,
  primary key (tenant_id, name),
  foreign key (tenant_id, name, version) references calendar (tenant_id, name, version),
  constraint a_calendar_version_counts_from_1 check (version >= 1)
);

-- Calendars that the current revisions of schedules name. A calendar in use cannot be deleted.
create table calendar_use (
  tenant_id uuid not null,
  calendar text not null,
  schedule_id uuid not null,
  primary key (tenant_id, calendar, schedule_id),
  foreign key (tenant_id, calendar) references calendar_head (tenant_id, name)
);
create index calendar_use_of_schedule on calendar_use (schedule_id);
