-- why:      a tenant may be held to so many schedules, payload bytes, waiting runs, requested runs a day and calls a second;
--           per class it may have what cannot start in time refused
--           (an older program runs on, and holds nobody to the new ones)
-- locks:    quota, for a moment (a column whose default rewrites nothing); schedule against writes while its index is built:
--           some seconds for millions of schedules
-- breaking: no

-- What a tenant may have; null: as much as there is. A tenant without a row has the defaults of src/domain/quotas/tenant.ts.
create table tenant_quota (
  tenant_id uuid primary key references tenant,
  schedules integer,
  min_interval_ms bigint,
  payload_bytes integer,
  queued_runs integer,
  requested_runs_per_day integer,
  api_rate_per_second integer,
  api_burst integer not null,
  version integer not null default 1,
  constraint a_tenant_quota_is_not_negative check (
    schedules >= 0 and min_interval_ms >= 0 and payload_bytes >= 0 and queued_runs >= 0 and requested_runs_per_day >= 0
    and api_burst >= 0),
  constraint an_api_rate_is_positive check (api_rate_per_second > 0)
);

-- Runs that were asked for on a UTC day, of tenants that are held to a number of them: written under the lock of
-- tenant_quota, in the transaction that makes the runs.
create table tenant_day (
  tenant_id uuid primary key references tenant,
  day date not null,
  requested_runs integer not null,
  constraint nobody_asks_for_less_than_nothing check (requested_runs >= 0)
) with (fillfactor = 50);

alter table quota
  add column on_infeasible text not null default 'warn',
  add constraint what_is_infeasible_is_treated_in_a_known_way check (on_infeasible in ('accept', 'warn', 'refuse'));

-- Counts what a tenant has, up to its limit, without looking at what it has deleted.
create index schedule_kept on schedule (tenant_id) where status <> 'deleted';
