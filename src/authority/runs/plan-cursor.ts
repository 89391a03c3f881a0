import type { Definition, Misfire } from "../../domain/definition.ts";
import {
  bounded,
  type MaterializationPlan,
  offsetOf,
  planKnownInstant,
  planMaterialization,
} from "../../domain/materialization.ts";
import type { RuleFault } from "../../domain/recurrence/fault.ts";
import type { SkipReason } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type CursorRow, isNextUnknown } from "../../store/rows/cursors.ts";
import { type LiveRun, openRunOf } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { MissingCalendar, type Placings } from "../calendars/placings.ts";
import { revisionOf } from "../revisions.ts";
import { onwardFrom } from "../timezones/onward.ts";

/** What to do about instants missed for a known cause, where it is not the schedule's own misfire policy. */
export type MissedAnswer = {
  misfire?: Partial<Misfire>;
  reason?: SkipReason;
  /** No instant up to now runs, though it were due later: each is a skip. */
  nothingRuns?: boolean;
};

/** A rule that cannot be computed is tried again after this, always: what cures it (a release, tz data) comes at any time. */
export const FAULT_RETRY_MS = 60_000;

/** `fault`: why the rule cannot be computed, so that what comes after this plan is not known. */
export type CursorPlan = MaterializationPlan & { fault?: string };

/**
 * What one locked cursor owes; undefined: nothing. A rule that cannot be computed (an upgrade or new tz data took what
 * it names) sets aside that one schedule: the instant that was known is settled, and the rule is tried again.
 */
export function planCursor(
  authority: Authority,
  cursor: CursorRow,
  open: readonly LiveRun[],
  nowAt: Instant,
  options: { floorAt: Instant; existing: ReadonlySet<Uuid>; placings: Placings } & MissedAnswer,
): CursorPlan | undefined {
  const unknown = isNextUnknown(cursor);
  if (unknown && cursor.fault_retry_at === null) return undefined;
  if (!unknown && (cursor.next_run_at === null || cursor.next_run_at > nowAt)) return undefined;
  if (cursor.next_due_at === null && cursor.fault === null) return undefined;
  const revision = authority.revisions.get(revisionOf(cursor));
  const definition = withMisfire(revision.definition, options.misfire);
  const runs = open.map(openRunOf);
  const settings = {
    floorAt: options.floorAt,
    missedReason: options.reason ?? "misfire",
    nothingRuns: options.nothingRuns ?? false,
    existing: options.existing,
  };
  const viewAt = (nextRunAt: Instant) => ({
    scheduleId: cursor.schedule_id,
    tenantId: cursor.tenant_id,
    revision: cursor.revision,
    content: cursor.content,
    nextRunAt,
    lastNominalAt: cursor.last_nominal_at ?? undefined,
    runsMade: Number(cursor.runs_made),
    catchUp: catchUpOf(cursor),
  });
  try {
    const compiled = authority.revisions.rule(revision.definition);
    if (!compiled.ok) throw new Error(sentenceOf(compiled.fault));
    const next = onwardFrom(cursor, compiled.rule);
    const nextRunAt = cursor.next_run_at ?? bounded(next, definition)(cursor.last_nominal_at ?? nowAt);
    if (nextRunAt === null || nextRunAt > nowAt) {
      const offsetMs = nextRunAt === null ? 0 : (offsetOf(cursor.schedule_id, definition, next)?.(nextRunAt) ?? 0);
      return { ...nothing(viewAt(nowAt)), ...leadingTo(cursor, nextRunAt, offsetMs) };
    }
    const place = options.placings.of(cursor, definition, compiled.rule);
    const placed = place === undefined ? settings : { ...settings, place };
    return planMaterialization(viewAt(nextRunAt), definition, next, runs, nowAt, placed);
  } catch (error) {
    const fault = messageOf(error);
    if (error instanceof MissingCalendar) return { ...nothing(viewAt(nowAt)), ...standing(cursor), fault };
    if (cursor.next_run_at === null)
      return { ...nothing(viewAt(nowAt)), ...leadingTo(cursor, null, 0), finished: false, fault };
    const known = planKnownInstant(viewAt(cursor.next_run_at), definition, runs, nowAt, settings);
    return known.finished ? known : { ...known, fault };
  }
}

function withMisfire(definition: Definition, misfire: MissedAnswer["misfire"]): Definition {
  return misfire === undefined ? definition : { ...definition, misfire: { ...definition.misfire, ...misfire } };
}

/** A rule's fault as its schedule shows it. */
export function sentenceOf({ field, found, message }: RuleFault): string {
  return `${field} ${JSON.stringify(found)}: ${message}`;
}

/** Nobody knows whether its instants are to run, so they wait, unsettled. */
function standing(cursor: CursorRow): Pick<MaterializationPlan, "next" | "finished"> {
  const { next_run_at: runAt, last_nominal_at: lastNominalAt, runs_made: runsMade } = cursor;
  return { next: { runAt, dueAt: null, lastNominalAt, runsMade: Number(runsMade) }, finished: false };
}

function nothing(cursor: MaterializationPlan["cursor"]) {
  return { cursor, runs: [], skips: [], ranges: [], superseded: [], canceled: [], cancelRequested: [] };
}

function catchUpOf({ catch_up_until: untilAt, caught_up: done, catch_up_reason: reason }: CursorRow) {
  return untilAt === null || reason === null ? undefined : { untilAt, done, reason };
}

function leadingTo(
  cursor: CursorRow,
  at: Instant | null,
  offsetMs: number,
): Pick<MaterializationPlan, "next" | "finished"> {
  const dueAt = at === null ? null : at + offsetMs;
  const next = { runAt: at, dueAt, lastNominalAt: cursor.last_nominal_at, runsMade: Number(cursor.runs_made) };
  return { next, finished: at === null };
}
