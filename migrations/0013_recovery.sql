-- why:      an authority whose database was restored stops until it is recovered, also when the copy was restored on the same
--           server; what was in doubt stays on record; partitions below the floor are dropped, across any crash
-- locks:    authority_epoch for an instant; the other tables are new
-- breaking: no

alter table authority_epoch
  add column database_oid oid; -- a restored dump is another database; null (the programs before): not compared

-- One row for each time the epoch was raised.
create table recovery (
  epoch integer primary key,
  recovered_at timestamptz not null,
  finished_at timestamptz, -- null: what follows the epoch (outbox, hints, counts) may still have to be put right
  actor text not null,
  reason text not null,
  findings jsonb not null, -- what differed, and what was in doubt
  tally jsonb not null default '{}'
);

-- Tables that were partitions of run or attempt and wait to be dropped.
create table retired_partition (
  name text primary key,
  from_at timestamptz not null,
  to_at timestamptz not null,
  retired_at timestamptz not null default clock_timestamp()
);
