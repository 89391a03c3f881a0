-- why:      that an attempt may have happened is remembered past a person's resend; a recovery that has lost nothing casts
--           no doubt on the effects that come after it
-- locks:    effect and recovery for an instant (a constant default rewrites nothing)
-- breaking: no

alter table effect
  -- An attempt before a person's resend may have happened. (`in_doubt`: one since then, which limits repeats.)
  add column doubted_before boolean not null default false;

alter table recovery
  add column nothing_lost boolean not null default false; -- of recoveries before this column, nobody knows
