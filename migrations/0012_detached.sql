-- why:      attempts outlive their workers
-- locks:    none yet
-- breaking: no

select 1;
