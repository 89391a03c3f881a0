-- why:      a tenant may be held to some job types; an API key says who made it and what it was rotated from and to;
--           a run that has waited for its tenant's resume says so
-- locks:    tenant and api_key for an instant (columns without a default rewrite nothing); live_run while its rows are read
-- breaking: no

alter table tenant
  add column allowed_jobs text[], -- names of job types; null: all there are
  add constraint allowed_jobs_are_named check (array_position(allowed_jobs, null) is null);

alter table api_key
  add column created_by text, -- the actor; null: made by the program itself, or before this column
  add column rotated_from uuid,
  add column replaced_by uuid;

alter table live_run
  drop constraint a_run_is_held_by_a_known_cause,
  add constraint a_run_is_held_by_a_known_cause
    check (held_by in ('none', 'overlap', 'tenant-limit', 'rate', 'replay', 'pause', 'suspended'));

create index tenant_suspended on tenant (id) where status = 'suspended';
create index api_key_of_tenant on api_key (tenant_id, id desc);
