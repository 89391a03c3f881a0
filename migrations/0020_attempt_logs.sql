-- why:      what an attempt's work says is kept in parts beside the results, and can be read while it runs; workers say when
--           their event loop was blocked
-- locks:    object, for an instant (a column with a default, and the check is not read over old rows: they are outputs)
-- breaking: no

-- Parts of logs are objects too: cleared away like results, but nobody's result.
alter table object
  add column kind text not null default 'output',
  add constraint an_object_is_of_a_known_kind check (kind in ('output', 'log')) not valid;

create table attempt_log (
  run_id uuid not null,
  attempt integer not null,
  n integer not null,
  object_id uuid not null,
  at_byte bigint not null, -- where it begins in the whole log; what is not kept counts too
  size integer not null,
  written_at timestamptz not null,
  primary key (run_id, attempt, n),
  constraint parts_count_from_1 check (n >= 1),
  constraint a_part_has_bytes check (size > 0 and at_byte >= 0)
);

alter table worker
  add column blocked_at timestamptz, -- when its event loop was last found to have been blocked
  add column blocked_ms integer; -- for how long
