-- why:      objects that nobody can publish any more, and results that were kept long enough, are deleted; what fails is
--           tried again, what was deleted early is deleted once more, and what was deleted is forgotten in the end
-- locks:    object, for an instant (columns without a default) and then while its rows are read once for the check and once
--           for each of two indexes: about a second per million results, in which nothing is staged or published
-- breaking: no

alter table object
  add column deleting_at timestamptz, -- since when its bytes are to go
  add column deleted_at timestamptz, -- when they last went
  add column clean_at timestamptz, -- when the cleaner looks again
  add column clean_tries integer not null default 0,
  add constraint what_goes_is_looked_after check (
    state not in ('deleting', 'deleted') or (deleting_at is not null and clean_at is not null)
  ),
  add constraint what_has_gone_has_a_time check (state <> 'deleted' or deleted_at is not null);

create index object_kept on object (referenced_at) where state = 'referenced';
create index object_going on object (clean_at) where state in ('deleting', 'deleted');
