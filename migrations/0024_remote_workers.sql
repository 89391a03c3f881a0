-- why:      tenants' own workers ask for work by the name of its job; they are seen among the workers
-- locks:    outbox and worker, for an instant (new columns without a default); then outbox, while its rows are read twice, for a
--           constraint and an index that none of them is in yet: about a second per million, in which nothing is claimed or born
-- breaking: no

-- Rows of class remote are never published: workers come for them over HTTP, and say what they can do. So each names one
-- run, and the job of that run. Whoever forms rows need not know of it: every one of them writes live rows first.
alter table outbox add column job text;

create function name_remote_job() returns trigger
  language plpgsql as
$$
declare
  found jsonb;
begin
  select coalesce(r.job::jsonb -> 'job', v.definition::jsonb -> 'job') into found
    from live_run l
    left join run r on l.own_work and r.scheduled_at = l.scheduled_at and r.id = l.id
    left join schedule_revision v on v.schedule_id = l.schedule_id and v.revision = l.revision
   where l.id = new.runs[1];
  new.job := (found ->> 'name') || '@' || coalesce(found ->> 'version', '1');
  return new;
end
$$;

create trigger outbox_names_remote_job before insert on outbox
  for each row when (new.kind = 'run' and new.class = 'remote') execute function name_remote_job();

alter table outbox add constraint a_remote_row_names_one_run_and_its_job
  check (kind <> 'run' or class <> 'remote' or (cardinality(runs) = 1 and job is not null and published_at is null));

create index outbox_remote on outbox (tenant_id, job, lane, available_at, id) where kind = 'run' and class = 'remote';

-- Workers of tenants stand beside ours; `slots` is what ours have, by class.
alter table worker
  add column tenant_id uuid, -- null: one of ours
  add column jobs text[], -- what a tenant's worker can do
  add column concurrency integer; -- how much of it at once
create index worker_of_tenant on worker (tenant_id) where tenant_id is not null;
