import type { Fence } from "../../../domain/fence.ts";
import type { EndedState, SkipReason } from "../../../domain/states.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { bug } from "../../../kernel/errors.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";
import { countEnds } from "../rollups.ts";
import { endColumnsOf, tellEnds, tellLetters } from "../webhooks/births.ts";

/** How a run ends: one update of its history row, and its live row goes. */
export type Ending = {
  id: Uuid;
  scheduledAt: Instant;
  state: EndedState;
  attempts: number;
  startedAt: Instant | null;
  acceptedFence: Fence | null;
  skipReason: SkipReason | null;
  cancelRequestedAt: Instant | null;
  error: { code: string; message: string } | null;
  result: {
    objectId: Uuid;
    uri: string;
    version: string | null;
    sha256: string;
    size: bigint;
    mediaType: string;
  } | null;
};

const END = sql(
  "endings_update_runs",
  `with ended as (
   update run r
      set state = e.state, attempts = e.attempts, started_at = e.started_at, finished_at = $17,
          accepted_fence = e.fence, skip_reason = e.skip_reason, cancel_requested_at = e.cancel_requested_at,
          cancel_accepted_at = case when e.state = 'canceled' then $17::timestamptz end,
          error_code = e.error_code, error_message = e.error_message, result_object = e.object_id,
          result_uri = e.uri, result_version = e.version, result_sha256 = e.sha256, result_size = e.size,
          result_media_type = e.media_type
     from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::int[], $5::timestamptz[], $6::bigint[], $7::text[],
                 $8::timestamptz[], $9::text[], $10::text[], $11::uuid[], $12::text[], $13::text[], $14::text[],
                 $15::bigint[], $16::text[])
       as e (id, scheduled_at, state, attempts, started_at, fence, skip_reason, cancel_requested_at, error_code,
             error_message, object_id, uri, version, sha256, size, media_type)
    where r.scheduled_at = e.scheduled_at and r.id = e.id and r.state = 'open'
   returning ${endColumnsOf("r")}),
   told as (${tellEnds("ended", "$17")}),
   counted as (${countEnds("ended", "$17")})
   select count(*)::int as count from ended`,
);
const DELETE_LIVE = sql("endings_delete_live", "delete from live_run where id = any($1::uuid[])");
const DEAD_LETTERS = sql(
  "endings_insert_dead_letters",
  `with letters as (
   insert into dead_letter (run_id, scheduled_at, tenant_id, schedule_id, class, reason, fingerprint, attempts,
                            error_code, error_message, created_at)
   select run_id, scheduled_at, tenant_id, schedule_id, class, reason, fingerprint, attempts, error_code, error_message, $11
     from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::int[],
                 $9::text[], $10::text[])
       as d (run_id, scheduled_at, tenant_id, schedule_id, class, reason, fingerprint, attempts, error_code, error_message)
   on conflict (run_id) do update
      set reason = excluded.reason, fingerprint = excluded.fingerprint, attempts = excluded.attempts,
          error_code = excluded.error_code, error_message = excluded.error_message, created_at = excluded.created_at,
          resolved_at = null, resolution = null, resolved_by = null
   returning run_id, scheduled_at, tenant_id, reason, fingerprint),
   given_up as (
   select ${endColumnsOf("r")}, l.reason, l.fingerprint
     from letters l
    cross join lateral (select from webhook_endpoint w where w.tenant_id = l.tenant_id and w.status = 'enabled' limit 1) w
     join run r on r.scheduled_at = l.scheduled_at and r.id = l.run_id)
   ${tellLetters("given_up", "$11")}`,
);
const CLOSE_ATTEMPTS = sql(
  "endings_close_attempts",
  `update attempt a set ended_at = $7, outcome = e.outcome, error_code = e.error_code, error_message = e.error_message
     from unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[])
       as e (scheduled_at, run_id, n, outcome, error_code, error_message)
    where a.scheduled_at = e.scheduled_at and a.run_id = e.run_id and a.n = e.n and a.ended_at is null`,
);

/** Ends runs whose live rows are locked. A run that is not open any more would break invariant 5: that is a bug. */
export async function endRuns(tx: Queryable, endings: readonly Ending[], nowAt: Instant): Promise<void> {
  if (endings.length === 0) return;
  await tx.query(DELETE_LIVE, [endings.map((end) => end.id)]);
  const [ended] = await tx.query<{ count: number }>(END, [
    endings.map((end) => end.id),
    endings.map((end) => end.scheduledAt),
    endings.map((end) => end.state),
    endings.map((end) => end.attempts),
    endings.map((end) => end.startedAt),
    endings.map((end) => end.acceptedFence),
    endings.map((end) => end.skipReason),
    endings.map((end) => end.cancelRequestedAt),
    endings.map((end) => end.error?.code),
    endings.map((end) => end.error?.message),
    endings.map((end) => end.result?.objectId),
    endings.map((end) => end.result?.uri),
    endings.map((end) => end.result?.version),
    endings.map((end) => end.result?.sha256),
    endings.map((end) => end.result?.size),
    endings.map((end) => end.result?.mediaType),
    instantText(nowAt),
  ]);
  if (ended!.count !== endings.length) {
    throw bug("a run to be ended was not open", { wanted: endings.length, ended: ended!.count });
  }
}

export type DeadLetter = {
  runId: Uuid;
  scheduledAt: Instant;
  tenantId: Uuid;
  scheduleId: Uuid | null;
  class: string;
  reason: string;
  fingerprint: string;
  attempts: number;
  /** Null: nothing was said of the failure but its reason. */
  code: string | null;
  message: string;
};

/** A run that was replayed and fails again has its letter opened anew; what was decided before is on record. */
export async function insertDeadLetters(tx: Queryable, letters: readonly DeadLetter[], nowAt: Instant): Promise<void> {
  if (letters.length === 0) return;
  await tx.query(DEAD_LETTERS, [
    letters.map((letter) => letter.runId),
    letters.map((letter) => letter.scheduledAt),
    letters.map((letter) => letter.tenantId),
    letters.map((letter) => letter.scheduleId),
    letters.map((letter) => letter.class),
    letters.map((letter) => letter.reason),
    letters.map((letter) => letter.fingerprint),
    letters.map((letter) => letter.attempts),
    letters.map((letter) => letter.code),
    letters.map((letter) => letter.message),
    instantText(nowAt),
  ]);
}

export type AttemptEnd = {
  runId: Uuid;
  scheduledAt: Instant;
  n: number;
  outcome: "failed" | "expired" | "canceled" | "released";
  error: { code: string; message: string } | null;
};

const READ_CLOSED = sql(
  "endings_read_closed",
  `select a.run_id as id, a.fence, a.outcome
     from unnest($1::timestamptz[], $2::uuid[], $3::bigint[]) as k (scheduled_at, run_id, fence)
     join attempt a on a.scheduled_at = k.scheduled_at and a.run_id = k.run_id and a.fence = k.fence
    where a.outcome is not null`,
);

/** How attempts that are not current any more were closed: what a repeated report was answered the first time. */
export async function readClosedAttempts(
  tx: Queryable,
  attempts: readonly { runId: Uuid; fence: Fence }[],
): Promise<(attempt: { runId: Uuid; fence: Fence }) => AttemptEnd["outcome"] | undefined> {
  if (attempts.length === 0) return () => undefined;
  const rows = await tx.query<{ id: Uuid; fence: Fence; outcome: AttemptEnd["outcome"] }>(READ_CLOSED, [
    attempts.map((one) => instantOf(one.runId)),
    attempts.map((one) => one.runId),
    attempts.map((one) => one.fence),
  ]);
  const outcomes = new Map(rows.map((row) => [`${row.id} ${row.fence}`, row.outcome]));
  return ({ runId, fence }) => outcomes.get(`${runId} ${fence}`);
}

/** Closes attempts after which the run goes on, or which did not succeed. A succeeding attempt is closed by its run. */
export async function closeAttempts(tx: Queryable, ends: readonly AttemptEnd[], nowAt: Instant): Promise<void> {
  if (ends.length === 0) return;
  await tx.query(CLOSE_ATTEMPTS, [
    ends.map((end) => end.scheduledAt),
    ends.map((end) => end.runId),
    ends.map((end) => end.n),
    ends.map((end) => end.outcome),
    ends.map((end) => end.error?.code),
    ends.map((end) => end.error?.message),
    instantText(nowAt),
  ]);
}
