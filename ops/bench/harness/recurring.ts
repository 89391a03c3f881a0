import type pg from "pg";
import type { Definition } from "../../../src/domain/definition.ts";
import { digestOf } from "../../../src/kernel/ids.ts";

export type Recurring = {
  name: string;
  definition: Definition;
  firstAt: Date;
  /** Left out: dealt to the tenants in turn. */
  tenantId?: string;
  /** Left out: its name. */
  payload?: object;
};

/** Schedules with rules and payloads of their own, written as createSchedule writes them. */
export async function plantRecurring(admin: pg.Pool, all: readonly Recurring[]): Promise<void> {
  const { rows } = await admin.query<{ id: string }>("select id from tenant order by name");
  const ids = all.map(() => crypto.randomUUID().replace(/^(.{14})4(.{4})./, "$18$28"));
  const tenants = all.map((one, n) => one.tenantId ?? rows[n % rows.length]!.id);
  const definitions = all.map((one) => JSON.stringify(one.definition));
  const payloads = all.map((one) => JSON.stringify(one.payload ?? { name: one.name }));
  const contents = all.map((_, n) => digestOf(`${definitions[n]}\n${payloads[n]}`));
  await admin.query(
    `insert into schedule (id, tenant_id, name, status, created_at, updated_at)
     select id, tenant_id, name, 'active', clock_timestamp(), clock_timestamp()
       from unnest($1::uuid[], $2::uuid[], $3::text[]) as s (id, tenant_id, name)`,
    [ids, tenants, all.map((one) => one.name)],
  );
  await admin.query(
    `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload, content)
     select id, 1, 'bench', clock_timestamp(), definition::json, payload::json, content
       from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[]) as r (id, definition, payload, content)`,
    [ids, definitions, payloads, contents],
  );
  await admin.query(
    `insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version, parser_version, content)
     select id, tenant_id, 1, first_at, first_at, first_at, '2026f', 1, content
       from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[]) as c (id, tenant_id, first_at, content) order by id`,
    [ids, tenants, all.map((one) => one.firstAt.toISOString()), contents],
  );
  await admin.query("vacuum (analyze) schedule, schedule_revision, schedule_cursor");
  await admin.query("checkpoint");
}

/** No schedule has another instant. Its state says so too: without that, the repair would bring the instants back. */
export async function finishSchedules(admin: pg.Pool): Promise<void> {
  await admin.query(
    `with finished as (update schedule set status = 'finished' where status = 'active' returning id)
     update schedule_cursor c set next_due_at = null from finished f where c.schedule_id = f.id`,
  );
}
