-- why:      what dashboards poll is counted where it happens, so that nobody scans runs for it: each batch that starts or ends
--           runs adds its counts to rollup_delta in its own transaction, and a sweeper folds these into rollup.
--           rollup_minute, which no program has written or read, makes way
--           (an older program runs on, and counts nothing)
-- locks:    rollup_minute, for a moment (it is empty); the others are new
-- breaking: no

-- What one transaction did in one class of one tenant. Whoever folds a row deletes it; it has no other key than its time.
create table rollup_delta (
  at timestamptz not null, -- authority time of the verb
  tenant_id uuid not null,
  class text not null,
  started integer not null default 0,
  succeeded integer not null default 0,
  failed integer not null default 0,
  canceled integer not null default 0,
  skipped integer not null default 0,
  retried integer not null default 0,
  lateness smallint[] not null default '{}' -- buckets of those that started and were held by nothing of their own
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
create index rollup_delta_age on rollup_delta (at);

drop table rollup_minute;

-- Per tenant and class, twice: by the minute, and by the hour, which is kept longer.
create table rollup (
  tenant_id uuid not null,
  minutes smallint not null,
  class text not null,
  at timestamptz not null, -- where the minute or the hour begins, UTC
  started integer not null,
  succeeded integer not null,
  failed integer not null,
  canceled integer not null,
  skipped integer not null,
  retried integer not null,
  lateness integer[] not null, -- histogram; its bounds are in src/domain/rollup.ts and do not change
  primary key (tenant_id, minutes, class, at),
  constraint a_rollup_is_of_a_minute_or_an_hour check (minutes in (1, 60)),
  constraint a_rollup_begins_where_its_time_does check (mod(extract(epoch from at), minutes * 60) = 0),
  constraint a_lateness_histogram_has_17_buckets check (cardinality(lateness) = 17)
) with (fillfactor = 80);
create index rollup_age on rollup (minutes, at);
