-- why:      attempts outlive their workers: a detached one waits for its callback, and another worker may adopt it
-- locks:    access exclusive on attempt and its partitions for an instant (two columns without a default: nothing is
--           rewritten or scanned)
-- breaking: no

-- A detached attempt is a running one whose live row names no worker; these two only remember what happened.
alter table attempt
  add column detached_at timestamptz,
  add column adopted_by text;
