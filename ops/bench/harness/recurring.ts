import type pg from "pg";
import type { Definition } from "../../../src/domain/definition.ts";

export type Recurring = { name: string; definition: Definition; firstAt: Date };

/** Schedules with rules of their own, written as createSchedule writes them, dealt to the tenants in turn. */
export async function plantRecurring(admin: pg.Pool, all: readonly Recurring[]): Promise<void> {
  const { rows } = await admin.query<{ id: string }>("select id from tenant order by name");
  const ids = all.map(() => crypto.randomUUID().replace(/^(.{14})4(.{4})./, "$18$28"));
  const tenants = all.map((_, n) => rows[n % rows.length]!.id);
  await admin.query(
    `insert into schedule (id, tenant_id, name, status, created_at, updated_at)
     select id, tenant_id, name, 'active', clock_timestamp(), clock_timestamp()
       from unnest($1::uuid[], $2::uuid[], $3::text[]) as s (id, tenant_id, name)`,
    [ids, tenants, all.map((one) => one.name)],
  );
  await admin.query(
    `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload)
     select id, 1, 'bench', clock_timestamp(), definition::json, '{}'
       from unnest($1::uuid[], $2::text[]) as r (id, definition)`,
    [ids, all.map((one) => JSON.stringify(one.definition))],
  );
  await admin.query(
    `insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version, parser_version)
     select id, tenant_id, 1, first_at, first_at, first_at, '2026f', 1
       from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as c (id, tenant_id, first_at) order by id`,
    [ids, tenants, all.map((one) => one.firstAt.toISOString())],
  );
  await admin.query("vacuum (analyze) schedule, schedule_revision, schedule_cursor");
  await admin.query("checkpoint");
}
