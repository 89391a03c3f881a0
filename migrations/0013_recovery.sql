-- why:      an authority that was restored stops until it is recovered; partitions are dropped above a floor
-- locks:    none yet
-- breaking: no

select 1;
