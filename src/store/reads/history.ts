import { CLASSES, type ResourceClass } from "../../domain/definition.ts";
import { LIVE_STATES, type RunState, type Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { type Database, type Statement, sql } from "../database.ts";
import { instantText } from "../values.ts";
import { readBounded } from "./bounded.ts";
import { LISTED_COLUMNS, type RunListItem } from "./runs.ts";

/**
 * History in pages. A page walks one index in order, at most `WALK_ROWS` of it, whatever its filters match: where few
 * or none do, it says where the next page goes on, and is short or empty. Joins come after the cut.
 *
 * $1 tenant, $2 bound, $3 and $4 position, $5 and $6 period, $7 class, $8 trigger, $9 state, $10 label,
 * $11 rows a page, $12 rows walked at most, $13 schedule
 */

export type Order = "newest" | "oldest";
export type Place = { scheduledAt: Instant; id: Uuid };

export type RunPage = {
  scheduleId?: Uuid;
  state?: RunState;
  class?: ResourceClass;
  trigger?: Trigger;
  /** Only runs of schedules that have this label now. */
  label?: { name: string; value: string };
  /** Nominal instants from (inclusive) and to (exclusive). */
  from?: Instant;
  to?: Instant;
  order: Order;
  /** Last row of the page before, or how far it looked. */
  after?: Place;
  /** Only what was materialised up to here: the same for all pages of one walk. */
  boundAt: Instant;
  limit: number;
};

export type FoundRuns = {
  items: RunListItem[];
  /** Where the next page begins; absent after the last one. */
  next?: Place;
};

/** Of the index, for one page. */
export const WALK_ROWS = 5_000;
const ASKING = { what: "runs", askFor: "less time with from and to, or for one schedule" };
const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const ORDERS = { newest: { dir: "desc", beyond: "<" }, oldest: { dir: "asc", beyond: ">" } } as const;

const PERIOD = "scheduled_at >= $5::timestamptz and scheduled_at < $6::timestamptz";
const LABELED = `($10::jsonb is null
      or exists (select from schedule s where s.id = r.schedule_id and s.tenant_id = $1 and s.labels @> $10))`;
const MATCHES = `r.materialized_at <= $2::timestamptz
      and ($7::text is null or r.class = $7) and ($8::text is null or r.trigger = $8) and ${LABELED}`;
/** What had ended by the bound: a run that ends while somebody pages does not come in between. */
const ENDED = "and ($9::text is null or (r.state = $9 and r.finished_at <= $2::timestamptz))";
/** `is true` keeps the tenant out of the choice of an index: one schedule's page is not read off that of its whole tenant. */
const OF_SCHEDULE = "schedule_id = $13::uuid and (tenant_id = $1) is true";
const REVISION = `left join lateral (select definition from schedule_revision
                      where schedule_id = r.schedule_id and revision = r.revision limit 1) v on true`;

/** The position, once for the rows and once more for the partitions: a pair of columns rules none out. */
const past = (order: Order) => {
  const { beyond } = ORDERS[order];
  return `scheduled_at ${beyond}= $3::timestamptz and (scheduled_at, id) ${beyond} ($3::timestamptz, $4::uuid)`;
};

function historyWalk(of: "tenant" | "schedule", order: Order): Statement {
  const { dir } = ORDERS[order];
  const owner = of === "tenant" ? "tenant_id = $1 and $13::uuid is null" : OF_SCHEDULE;
  return sql(
    `history_of_${of}_${order}`,
    `select ${LISTED_COLUMNS}, r.matches, r.place = $12 as "isLast"
       from (select r.*, ${MATCHES} ${ENDED} as matches
               from (select *, row_number() over (order by scheduled_at ${dir}, id ${dir}) as place
                       from run
                      where ${owner} and ${past(order)} and ${PERIOD}
                      order by scheduled_at ${dir}, id ${dir} limit $12::int) r) r
       left join lateral (select * from live_run where id = r.id limit 1) l on true
       ${REVISION}
      where r.matches or r.place = $12
      order by r.scheduled_at ${dir}, r.id ${dir} limit $11`,
  );
}

/** Where an open run stands is known to the small table only: start there, class by class as its index is. */
function liveWalk(of: "tenant" | "schedule", order: Order): Statement {
  const { dir } = ORDERS[order];
  const [walks, owner] =
    of === "tenant"
      ? [
          `unnest(array[${CLASSES.map((one) => `'${one}'`).join()}]) as c (class)`,
          "tenant_id = $1 and class = c.class and $13::uuid is null",
        ]
      : ["(select 1) as c", OF_SCHEDULE];
  return sql(
    `live_of_${of}_${order}`,
    `select ${LISTED_COLUMNS}, l.state = $9 and (${MATCHES}) as matches, l.place = $12 as "isLast"
       from ${walks}
      cross join lateral (select *, row_number() over (order by scheduled_at ${dir}, id ${dir}) as place
                            from live_run
                           where ${owner} and ${past(order)} and ${PERIOD}
                           order by scheduled_at ${dir}, id ${dir} limit $12::int) l
      cross join lateral (select * from run where scheduled_at = l.scheduled_at and id = l.id limit 1) r
       ${REVISION}
      where l.place = $12 or (l.state = $9 and ${MATCHES})
      order by l.scheduled_at ${dir}, l.id ${dir} limit $11`,
  );
}

const WALKS = {
  history: {
    tenant: { newest: historyWalk("tenant", "newest"), oldest: historyWalk("tenant", "oldest") },
    schedule: { newest: historyWalk("schedule", "newest"), oldest: historyWalk("schedule", "oldest") },
  },
  live: {
    tenant: { newest: liveWalk("tenant", "newest"), oldest: liveWalk("tenant", "oldest") },
    schedule: { newest: liveWalk("schedule", "newest"), oldest: liveWalk("schedule", "oldest") },
  },
} as const;

type WalkedRow = RunListItem & { matches: boolean; isLast: boolean };

/**
 * A filter by a live state shows what is so now, and is not stable over pages. Throws `busy` when even so many rows
 * took too long to read.
 */
export async function listRuns(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  page: RunPage,
  walkRows: number = WALK_ROWS,
): Promise<FoundRuns> {
  const [statement, values] = statementOf(tenantId, page, Math.max(walkRows, page.limit + 1));
  const rows = await readBounded<WalkedRow>(db, statement, values, ASKING);
  // Rows after the first end of a walk are not all there are.
  const end = rows.findIndex((row) => row.isLast);
  const whole = end < 0 ? rows : rows.slice(0, end + 1);
  const found = whole.filter((row) => row.matches);
  const items = found.slice(0, page.limit).map(({ matches: _, isLast: __, ...item }) => item);
  const last = found.length > items.length ? items.at(-1) : rows[end];
  return last === undefined ? { items } : { items, next: { scheduledAt: last.scheduledAt, id: last.id } };
}

function statementOf(tenantId: Uuid, page: RunPage, walkRows: number): [Statement, unknown[]] {
  const { after, order, state, scheduleId, label } = page;
  const isLive = (LIVE_STATES as readonly (string | undefined)[]).includes(state);
  const start = order === "newest" ? { at: "infinity", id: LAST_ID } : { at: "-infinity", id: NIL_ID };
  const statement = WALKS[isLive ? "live" : "history"][scheduleId === undefined ? "tenant" : "schedule"][order];
  return [
    statement,
    [
      tenantId,
      instantText(page.boundAt),
      after === undefined ? start.at : instantText(after.scheduledAt),
      after?.id ?? start.id,
      page.from === undefined ? "-infinity" : instantText(page.from),
      page.to === undefined ? "infinity" : instantText(page.to),
      page.class ?? null,
      page.trigger ?? null,
      state ?? null,
      label === undefined ? null : JSON.stringify({ [label.name]: label.value }),
      page.limit + 1,
      walkRows,
      scheduleId ?? null,
    ],
  ];
}
