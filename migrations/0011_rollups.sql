-- why:      rollups are kept incrementally, history has a stable bound
-- locks:    none yet
-- breaking: no

select 1;
