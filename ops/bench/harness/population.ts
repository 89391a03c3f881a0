import type pg from "pg";
import { digestOf } from "../../../src/kernel/ids.ts";

export async function plantTenants(admin: pg.Pool, tenants: number): Promise<void> {
  await admin.query(
    `insert into tenant (id, name)
     select overlay(overlay(gen_random_uuid()::text placing '8' from 15 for 1) placing '8' from 20 for 1)::uuid, 'tenant ' || i
       from generate_series(1, $1::int) i`,
    [tenants],
  );
}

/** Many schedules at once, written as createSchedule writes them, all due at `dueAt`. */
export async function plantSchedules(
  admin: pg.Pool,
  options: {
    schedules: number;
    /** Dealt to so many tenants in turn, in the order of their names. */
    tenants: number;
    dueAt: Date;
    /** Left out: a job that does nothing. */
    sleepMs?: number;
  },
): Promise<void> {
  const { schedules, tenants, dueAt, sleepMs } = options;
  const payload = sleepMs === undefined ? "{}" : JSON.stringify({ ms: sleepMs });
  const definition = JSON.stringify({
    rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" },
    job: { kind: "function", name: sleepMs === undefined ? "bench.noop" : "bench.sleep", version: 1 },
    class: "short",
    priority: "normal",
    retry: { maxAttempts: 3, maxElapsedMs: 86_400_000, baseMs: 1000, capMs: 300_000 },
    attemptTimeoutMs: 900_000,
    runIfPast: false,
    overlap: { policy: "forbid" },
    misfire: { policy: "latest", graceMs: 60_000, maxCatchUp: 100 },
  });
  const content = digestOf(`${definition}\n${payload}`);
  await admin.query(
    `with t as (select id, row_number() over (order by name) - 1 as n from tenant),
          s as (select overlay(overlay(gen_random_uuid()::text placing '8' from 15 for 1) placing '8' from 20 for 1)::uuid as id, i
                  from generate_series(0, $1::int - 1) i)
     insert into schedule (id, tenant_id, name, status, created_at, updated_at)
     select s.id, t.id, 'schedule ' || s.i, 'active', clock_timestamp(), clock_timestamp()
       from s join t on t.n = s.i % $2::int`,
    [schedules, tenants],
  );
  await admin.query(
    `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload, content)
     select id, 1, 'bench', clock_timestamp(), $1::json, $3, $2 from schedule
       on conflict do nothing`,
    [definition, content, payload],
  );
  await admin.query(
    `insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version, parser_version, content)
     select id, tenant_id, 1, $1::timestamptz, $1::timestamptz, clock_timestamp(), '2026f', 1, $2 from schedule order by id
       on conflict do nothing`,
    [dueAt.toISOString(), content],
  );
  await admin.query("vacuum (analyze) schedule, schedule_revision, schedule_cursor, tenant");
  await admin.query("checkpoint");
}
