import type { LetterFilter, LetterState, Resolution } from "../../domain/dead-letters.ts";
import type { Job } from "../../domain/jobs/job.ts";
import type { Instant } from "../../kernel/clock.ts";
import { PunctualError } from "../../kernel/errors.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { type Database, type Queryable, sql } from "../database.ts";
import { isStatementTimeout } from "../sql-errors.ts";
import { instantText } from "../values.ts";

/** A dead letter as people see it. Instants are epoch ms. */
export type LetterView = {
  runId: Uuid;
  scheduleId: Uuid | null;
  scheduledAt: Instant;
  class: string;
  state: LetterState;
  reason: string;
  fingerprint: string;
  /** Attempts the run had had by then, in all its lives. */
  attempts: number;
  error: { code: string; message: string } | null;
  /** When the run was given up. */
  failedAt: Instant;
  resolvedAt: Instant | null;
  resolvedBy: string | null;
  /** How often the run was replayed so far. */
  replays: number;
  /** null: its history was removed. */
  job: Job | null;
};

/** Of the run with that id and instant. */
const jobOf = (id: string, scheduledAt: string) =>
  `(select coalesce((r.job -> 'job')::json, r.job::json, v.definition -> 'job')
      from run r left join schedule_revision v on v.schedule_id = r.schedule_id and v.revision = r.revision
     where r.scheduled_at = ${scheduledAt} and r.id = ${id})`;

const COLUMNS = `d.run_id as "runId", d.schedule_id as "scheduleId", d.scheduled_at as "scheduledAt", d.class,
  coalesce(d.resolution, 'open') as state, d.reason, d.fingerprint, d.attempts,
  case when d.error_code is not null or d.error_message is not null
       then jsonb_build_object('code', coalesce(d.error_code, d.reason), 'message', coalesce(d.error_message, '')) end as error,
  d.created_at as "failedAt", d.resolved_at as "resolvedAt", d.resolved_by as "resolvedBy",
  (select count(*)::int from dead_letter_resolution o where o.run_id = d.run_id and o.resolution = 'replayed') as replays,
  ${jobOf("d.run_id", "d.scheduled_at")} as job`;

const FIND = sql(
  "read_letters",
  `select ${COLUMNS} from dead_letter d where d.tenant_id = $1 and d.run_id = any($2::uuid[])`,
);

const FITS = `d.created_at >= $4::timestamptz and d.created_at < $5::timestamptz and ($6::text is null or d.class = $6)
  and ($7::text is null or d.reason = $7) and ($8::text is null or d.fingerprint = $8)`;
const STATES = {
  open: "d.resolved_at is null",
  replayed: "d.resolution = 'replayed'",
  dismissed: "d.resolution = 'dismissed'",
  any: "true",
} as const;

/** Text by text, so that each is planned with the index that fits it. */
const pageOf = (scope: string, state: keyof typeof STATES) =>
  sql(
    `read_letters_${scope === "" ? "tenant" : "schedule"}_${state}`,
    `select ${COLUMNS} from dead_letter d
      where d.tenant_id = $1 ${scope} and ${STATES[state]} and (d.created_at, d.run_id) < ($2::timestamptz, $3::uuid)
        and ${FITS}
      order by d.created_at desc, d.run_id desc limit $9`,
  );
const OF_SCHEDULE = "and d.schedule_id = $10";
const statesOf = (scope: string) => ({
  open: pageOf(scope, "open"),
  replayed: pageOf(scope, "replayed"),
  dismissed: pageOf(scope, "dismissed"),
  any: pageOf(scope, "any"),
});
const PAGES = { tenant: statesOf(""), schedule: statesOf(OF_SCHEDULE) };

const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";
/** A filter that fits next to nothing would walk all letters for one page. */
const LIST_TIMEOUT_MS = 5_000;

export type LetterPage = LetterFilter & {
  state: LetterState | "any";
  after?: { failedAt: Instant; runId: Uuid };
  limit: number;
};

/** Latest failure first. Throws `busy` when the page took too long to find. */
export async function listLetters(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  page: LetterPage,
): Promise<LetterView[]> {
  const { scheduleId, state, after, limit } = page;
  const values = [tenantId, after === undefined ? "infinity" : instantText(after.failedAt), after?.runId ?? LAST_ID];
  const shared = [...values, ...filterOf(page), limit];
  const statement = PAGES[scheduleId === undefined ? "tenant" : "schedule"][state];
  const all = scheduleId === undefined ? shared : [...shared, scheduleId];
  return within(() => db.queryWithin<LetterView>(LIST_TIMEOUT_MS, statement, all));
}

function filterOf({ fromAt, toAt, class: class_, reason, fingerprint }: LetterFilter): unknown[] {
  const from = fromAt === undefined ? "-infinity" : instantText(fromAt);
  const to = toAt === undefined ? "infinity" : instantText(toAt);
  return [from, to, class_ ?? null, reason ?? null, fingerprint ?? null];
}

async function within<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    const message = `The dead letters were not found within ${LIST_TIMEOUT_MS / 1000} s; ask for less time with from and to, or for one schedule`;
    throw new PunctualError("busy", message, { actor: "caller", retryable: true, cause: error });
  }
}

/** Those of these runs that have a letter, in the order of the ids. */
export async function findLetters(db: Queryable, tenantId: Uuid, runIds: readonly Uuid[]): Promise<LetterView[]> {
  const found = new Map((await db.query<LetterView>(FIND, [tenantId, runIds])).map((row) => [row.runId, row]));
  return runIds.flatMap((id) => found.get(id) ?? []);
}

/** One decision, and the failure it was about. */
export type ResolutionView = {
  n: number;
  resolution: Resolution;
  resolvedAt: Instant;
  resolvedBy: string;
  reason: string | null;
  operationId: Uuid | null;
  failedAt: Instant;
  failure: string;
  attempts: number;
  error: { code: string; message: string } | null;
};

const HISTORY = sql(
  "read_letter_history",
  `select n, resolution, resolved_at as "resolvedAt", resolved_by as "resolvedBy", reason, operation_id as "operationId",
          failed_at as "failedAt", failure, attempts,
          case when error_code is not null or error_message is not null
               then jsonb_build_object('code', coalesce(error_code, failure), 'message', coalesce(error_message, '')) end as error
     from dead_letter_resolution where run_id = $1 order by n desc limit 100`,
);

/** What was decided about a run, the latest first; of very many, the latest hundred. */
export function readLetterHistory(db: Queryable, runId: Uuid): Promise<ResolutionView[]> {
  return db.query<ResolutionView>(HISTORY, [runId]);
}

/** Open letters of one kind of failure. */
export type LetterGroup = {
  fingerprint: string;
  count: number;
  schedules: number;
  firstAt: Instant;
  lastAt: Instant;
  /** The latest of them. */
  runId: Uuid;
  job: Job | null;
  reason: string;
  error: { code: string; message: string } | null;
};

const LOOKED = (scope: string) => `looked as (
   select d.run_id, d.scheduled_at, d.schedule_id, d.class, d.reason, d.fingerprint, d.error_code, d.error_message, d.created_at
     from dead_letter d
    where d.tenant_id = $1 ${scope} and d.resolved_at is null
      and d.created_at >= $2::timestamptz and d.created_at < $3::timestamptz
    order by d.created_at desc, d.run_id desc limit $7)`;
const groupsOf = (name: string, scope: string) =>
  sql(
    name,
    `with ${LOOKED(scope)}
     select (select count(*)::int from looked) as looked, g.*, ${jobOf('g."runId"', 'g."scheduledAt"')} as job from (
       select fingerprint, count(*)::int as count, count(distinct schedule_id)::int as schedules,
              min(created_at) as "firstAt", max(created_at) as "lastAt",
              (array_agg(run_id order by created_at desc, run_id desc))[1] as "runId",
              (array_agg(scheduled_at order by created_at desc, run_id desc))[1] as "scheduledAt",
              (array_agg(reason order by created_at desc, run_id desc))[1] as reason,
              (array_agg(case when error_code is not null or error_message is not null
                              then jsonb_build_object('code', coalesce(error_code, reason), 'message', coalesce(error_message, '')) end
                         order by created_at desc, run_id desc))[1] as error
         from looked
        where ($4::text is null or class = $4) and ($5::text is null or reason = $5)
          and ($6::text is null or fingerprint = $6)
        group by fingerprint) g
      order by count desc, fingerprint limit 100`,
  );
const GROUPS = groupsOf("read_letter_groups", "");
const GROUPS_OF_SCHEDULE = groupsOf("read_letter_groups_of_schedule", "and d.schedule_id = $8");

/** Open letters looked at for groups: the latest ones. */
const MOST_GROUPED = 10_000;

/** The hundred largest groups; `capped`: there are older letters that were not looked at. */
export async function groupLetters(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  filter: LetterFilter,
): Promise<{ groups: LetterGroup[]; capped: boolean }> {
  const values = [tenantId, ...filterOf(filter), MOST_GROUPED];
  const { scheduleId } = filter;
  const rows = await within(() =>
    scheduleId === undefined
      ? db.queryWithin<LetterGroup & { looked: number }>(LIST_TIMEOUT_MS, GROUPS, values)
      : db.queryWithin<LetterGroup & { looked: number }>(LIST_TIMEOUT_MS, GROUPS_OF_SCHEDULE, [...values, scheduleId]),
  );
  return { groups: rows, capped: (rows[0]?.looked ?? 0) === MOST_GROUPED };
}

const COUNT_OPEN = sql(
  "read_letters_open_of_schedule",
  `select count(*)::int as open from (
     select 1 from dead_letter where schedule_id = $1 and resolved_at is null limit $2) o`,
);

/** Open letters of one schedule, counted up to `most`. */
export async function countOpenLetters(db: Queryable, scheduleId: Uuid, most: number): Promise<number> {
  return (await db.query<{ open: number }>(COUNT_OPEN, [scheduleId, most]))[0]!.open;
}

const PROSPECTS = sql(
  "read_letter_prospects",
  `select case when d.scheduled_at < coalesce((select floor_at from history_floor), '-infinity') then 'history-removed'
               when s.status = 'deleted' then 'schedule-deleted' else 'replayed' end as kind, count(*)::int as count
     from dead_letter d left join schedule s on s.id = d.schedule_id
    where d.run_id = any($1::uuid[]) group by 1`,
);

/** What a replay of these would come to, by name. */
export async function readProspects(db: Queryable, runIds: readonly Uuid[]): Promise<Record<string, number>> {
  const rows = await db.query<{ kind: string; count: number }>(PROSPECTS, [runIds]);
  return Object.fromEntries(rows.map((row) => [row.kind, row.count]));
}

const OWN_PAYLOAD = sql(
  "read_letter_own_payload",
  "select 1 from run where scheduled_at = $2::timestamptz and id = $1 and payload is not null",
);

/** Whether the run brought its payload along, instead of having its revision's. */
export async function hasOwnPayload(db: Queryable, runId: Uuid): Promise<boolean> {
  return (await db.query(OWN_PAYLOAD, [runId, instantText(instantOf(runId))])).length === 1;
}
