import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

const PAGE = 20_000;

// Page by page: no look at a large table may be one statement.
const READ = sql(
  "read_distinct_rules",
  `with page as materialized (
     select id, revision, status from schedule where id > $1 order by id limit $2)
   select r.definition ->> 'rule' as rule, count(*)::int as schedules, (array_agg(p.id order by p.id))[1] as example
     from page p join schedule_revision r on r.schedule_id = p.id and r.revision = p.revision
    where p.status in ('active', 'paused')
    group by r.definition ->> 'rule'`,
);
const LAST_OF_PAGE = sql(
  "read_last_of_page",
  "select id from (select id from schedule where id > $1 order by id limit $2) page order by id desc limit 1",
);

/** A rule as it stands in definitions (JSON), how many active and paused schedules have it, and one of them. */
export type DistinctRule = { rule: string; schedules: number; example: Uuid };

export async function readDistinctRules(db: Queryable): Promise<DistinctRule[]> {
  const found = new Map<string, DistinctRule>();
  for (let after: Uuid | undefined = NIL_ID; after !== undefined; ) {
    for (const { rule, schedules, example } of await db.query<DistinctRule>(READ, [after, PAGE])) {
      const known = found.get(rule);
      found.set(rule, { rule, schedules: schedules + (known?.schedules ?? 0), example: known?.example ?? example });
    }
    after = (await db.query<{ id: Uuid }>(LAST_OF_PAGE, [after, PAGE]))[0]?.id;
  }
  return [...found.values()];
}
