-- why:      dead letters are replayed
-- locks:    none yet
-- breaking: no

select 1;
