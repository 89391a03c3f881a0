import { showId, type Uuid } from "../../kernel/ids.ts";
import { type Job, jobTypeOf } from "../jobs/job.ts";
import { eventIdOf, TEST_EVENT } from "./events.ts";

/** What is kept of an event: columns of its run as they were, as JSON writes them. */
export type EventFacts = {
  id: Uuid;
  schedule_id: Uuid | null;
  schedule: { key: string | null; name: string } | null;
  /** `kind` null: not known when it was told of. */
  job: { kind: Job["kind"] | null; name?: string | null };
  class: string;
  scheduled_at: string;
  due_at: string;
  started_at: string | null;
  state?: string;
  trigger?: string;
  attempts?: number;
  finished_at?: string | null;
  skip_reason?: string | null;
  error_code?: string | null;
  error_message?: string | null;
  result_sha256?: string | null;
  result_size?: number | null;
  result_media_type?: string | null;
  /** Of a run that was given up. */
  reason?: string;
  fingerprint?: string;
  /** Of one that is late. */
  admitted_at?: string;
  held_by?: string;
};

export type Event = { id: bigint; type: string; runId: Uuid | null; n: number; occurredAt: number; facts: EventFacts };

const shown = (text: string) => new Date(text).toISOString();
const shownOrNull = (text: string | null | undefined) => (text == null ? null : shown(text));

/** `webhook-id` and the body: what receivers get. docs/webhooks.md shows it. */
export function messageOf({ id, type, runId, n, occurredAt, facts }: Event): { eventId: string; body: string } {
  const eventId = runId === null ? eventIdOf(type, String(id), 0) : eventIdOf(type, showId("run", runId), n);
  const data = type === TEST_EVENT ? {} : dataOf(type, facts);
  return { eventId, body: JSON.stringify({ type, timestamp: new Date(Math.floor(occurredAt)).toISOString(), data }) };
}

function dataOf(type: string, facts: EventFacts) {
  const { schedule_id, schedule } = facts;
  return {
    run: {
      id: showId("run", facts.id),
      ...(facts.state === undefined ? {} : { state: facts.state, trigger: facts.trigger }),
      class: facts.class,
      scheduledAt: shown(facts.scheduled_at),
      dueAt: shown(facts.due_at),
      startedAt: shownOrNull(facts.started_at),
      ...(facts.finished_at == null ? {} : { finishedAt: shown(facts.finished_at), attempts: facts.attempts }),
    },
    schedule: schedule_id === null ? null : { id: showId("sch", schedule_id), ...schedule },
    job: facts.job.kind === null ? null : jobTypeOf(facts.job as Job),
    ...(facts.error_code == null ? {} : { error: { code: facts.error_code, message: facts.error_message ?? "" } }),
    ...(facts.skip_reason == null ? {} : { skipReason: facts.skip_reason }),
    ...(facts.result_sha256 == null
      ? {}
      : { result: { sha256: facts.result_sha256, size: facts.result_size, mediaType: facts.result_media_type } }),
    ...(type === "run.dead-lettered" ? { deadLetter: { reason: facts.reason, fingerprint: facts.fingerprint } } : {}),
    ...(type === "run.late" ? { heldBy: facts.held_by } : {}),
  };
}
