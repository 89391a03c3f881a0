import type { Payload, ResourceClass } from "../../domain/definition.ts";
import type { Job } from "../../domain/jobs/job.ts";
import type { HeldBy, RunState, SkipReason, Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText, isStorable } from "../values.ts";
import { type Called, calledOf } from "./called.ts";

/** A run as it stands: history and, while it is open, its live row. Instants are epoch ms. */
export type RunListItem = {
  id: Uuid;
  scheduleId: Uuid | null;
  schedule: Called;
  tenantId: Uuid;
  class: ResourceClass;
  state: RunState;
  trigger: Trigger;
  scheduledAt: Instant;
  dueAt: Instant;
  admittedAt: Instant;
  startedAt: Instant | null;
  finishedAt: Instant | null;
  /** Number of the latest attempt; 0 before the first. */
  attempt: number;
  revision: number | null;
  skipReason: SkipReason | null;
  cancelRequestedAt: Instant | null;
  error: { code: string; message: string } | null;
  result: { uri: string; version: string | null; sha256: string; size: number; mediaType: string | null } | null;
  job: Job | null;
  worker: string | null;
  leaseUntil: Instant | null;
  heldBy: HeldBy | null;
};
export type RunView = RunListItem & { payload: Payload };

/** Of `run r`, `live_run l` and `schedule_revision v`. */
export const LISTED_COLUMNS = `r.id, r.schedule_id as "scheduleId", r.tenant_id as "tenantId", r.class,
  ${calledOf("r")} as schedule,
  coalesce(l.state, case r.state when 'open' then 'queued' else r.state end) as state, r.trigger,
  r.scheduled_at as "scheduledAt", r.due_at as "dueAt", coalesce(l.admitted_at, r.admitted_at) as "admittedAt",
  coalesce(r.started_at, l.started_at) as "startedAt", r.finished_at as "finishedAt",
  coalesce(l.attempt, r.attempts) as attempt, r.revision, r.skip_reason as "skipReason",
  coalesce(r.cancel_requested_at, l.cancel_requested_at) as "cancelRequestedAt",
  case when r.error_code is not null or r.error_message is not null
       then jsonb_build_object('code', coalesce(r.error_code, 'failed'), 'message', coalesce(r.error_message, '')) end as error,
  case when r.result_uri is not null
       then jsonb_build_object('uri', r.result_uri, 'version', r.result_version, 'sha256', r.result_sha256,
                               'size', r.result_size, 'mediaType', r.result_media_type) end as result,
  coalesce((r.job -> 'job')::json, r.job::json, v.definition -> 'job') as job,
  l.worker, l.lease_until as "leaseUntil",
  case when l.state in ('queued', 'retrying') and l.not_before <= statement_timestamp()
            and (select status from tenant t where t.id = r.tenant_id) = 'suspended'
       then 'suspended' else l.held_by end as "heldBy"`;
const JOINS = `left join live_run l on l.id = r.id
  left join schedule_revision v on v.schedule_id = r.schedule_id and v.revision = r.revision`;

const FIND = sql(
  "read_run",
  `select ${LISTED_COLUMNS}, coalesce(r.payload::json, v.payload, '{}') as payload from run r ${JOINS}
    where r.scheduled_at = $3::timestamptz and r.id = $2 and r.tenant_id = $1`,
);

export async function findRun(db: Queryable, tenantId: Uuid, runId: Uuid): Promise<RunView | undefined> {
  const scheduledAt = instantOf(runId);
  if (!isStorable(scheduledAt)) return undefined;
  return (await db.query<RunView>(FIND, [tenantId, runId, instantText(scheduledAt)]))[0];
}

export type AttemptView = {
  n: number;
  worker: string;
  startedAt: Instant;
  endedAt: Instant | null;
  /** How it ended; `running` while it has not. The attempt that ended its run carries the run's end. */
  outcome: string;
  error: { code: string; message: string } | null;
  detachedAt: Instant | null;
  adoptedBy: string | null;
  /** As the job last said it, in JSON. */
  progress: unknown;
  /** Bytes of its log so far, those that are not kept included; null: it has said nothing. */
  logBytes: number | null;
};

const LIST_ATTEMPTS = sql(
  "read_attempts",
  `select a.n, a.worker, a.started_at as "startedAt",
          coalesce(a.ended_at, case when a.n = r.attempts then r.finished_at end) as "endedAt",
          coalesce(a.outcome, case when r.state <> 'open' and a.n = r.attempts then r.state else 'running' end) as outcome,
          case when a.error_message is not null or a.error_code is not null
               then jsonb_build_object('code', coalesce(a.error_code, 'failed'), 'message', coalesce(a.error_message, ''))
               when r.state <> 'open' and a.n = r.attempts and r.error_message is not null
               then jsonb_build_object('code', coalesce(r.error_code, 'failed'), 'message', r.error_message) end as error,
          a.detached_at as "detachedAt", a.adopted_by as "adoptedBy", a.progress,
          (select (max(l.at_byte + l.size))::float8 from attempt_log l where l.run_id = a.run_id and l.attempt = a.n) as "logBytes"
     from attempt a join run r on r.scheduled_at = a.scheduled_at and r.id = a.run_id
    where a.scheduled_at = $3::timestamptz and a.run_id = $2 and r.tenant_id = $1
    order by a.n`,
);

export function listAttempts(db: Queryable, tenantId: Uuid, runId: Uuid): Promise<AttemptView[]> {
  return db.query<AttemptView>(LIST_ATTEMPTS, [tenantId, runId, instantText(instantOf(runId))]);
}

export type ResultView = {
  uri: string;
  version: string | null;
  sha256: string;
  size: number;
  mediaType: string | null;
};

const FIND_RESULT = sql(
  "read_result",
  `select result_uri as uri, result_version as version, result_sha256 as sha256, result_size::float8 as size, result_media_type as "mediaType"
     from run where scheduled_at = $2::timestamptz and id = $1 and result_uri is not null`,
);

/** The result behind a signed link: the signature is the permission, so no tenant is asked for. */
export async function findResult(db: Queryable, runId: Uuid): Promise<ResultView | undefined> {
  return (await db.query<ResultView>(FIND_RESULT, [runId, instantText(instantOf(runId))]))[0];
}
