-- why:      effects are sent
-- locks:    none yet
-- breaking: no

select 1;
