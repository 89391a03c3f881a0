-- why:      every start of a chain of nominal instants is kept, with what the chain before had settled, so that a ledger can
--           prove that no end of an old chain is lost; the database writes it, so that no verb forgets and none has to know
-- locks:    schedule_cursor for an instant (create trigger)
-- breaking: no

create table chain (
  schedule_id uuid not null,
  n integer not null,
  started_at timestamptz not null,
  reason text not null,
  revision integer not null,
  prev_last_at timestamptz, -- the newest instant of the chain before; null: it had none
  prev_next_at timestamptz, -- what would have come next in it; later than started_at, or something was left unsettled
  prev_fault text, -- why that could not be computed at the time
  primary key (schedule_id, n),
  constraint chains_count_from_1 check (n >= 1),
  constraint a_kept_chain_started_for_a_known_reason check (reason in ('created', 'revised', 'resumed', 'adopted'))
);

-- The row of the cursor is locked, so numbers are given one after the other.
create function keep_chain_start() returns trigger language plpgsql as $$
begin
  insert into chain (schedule_id, n, started_at, reason, revision, prev_last_at, prev_next_at, prev_fault)
  select new.schedule_id, coalesce(max(n), 0) + 1, new.chain_started_at, new.chain_reason, new.revision,
         case when tg_op = 'UPDATE' then old.last_nominal_at end,
         case when tg_op = 'UPDATE' then old.next_run_at end,
         case when tg_op = 'UPDATE' then old.fault end
    from chain where schedule_id = new.schedule_id;
  return null;
end $$;

create trigger a_first_chain_is_kept after insert on schedule_cursor
  for each row execute function keep_chain_start();
-- Of the columns that move with every run it knows nothing: materialize never fires it.
create trigger a_new_chain_is_kept after update of chain_started_at on schedule_cursor
  for each row when (old.chain_started_at is distinct from new.chain_started_at)
  execute function keep_chain_start();
