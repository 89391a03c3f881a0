-- why:      objects are kept, pinned and cleaned up
-- locks:    none yet
-- breaking: no

select 1;
