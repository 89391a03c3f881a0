import { REPLAYABLE_TOGETHER } from "../../../domain/dead-letters.ts";
import { countNames } from "../../../domain/operation.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import { type LetterPlace, readLetterKeys } from "../../../store/rows/dead-letters.ts";
import type { Authority } from "../../authority.ts";
import { type Graves, lockGraves, reopen } from "../../dead-letters/reopen.ts";
import { lookAgain } from "../../refusal.ts";
import { countRequested, lockRoomForRuns } from "../../tenants/admit.ts";
import { waitForQuota } from "../begin.ts";
import { NOTHING_DONE, type OperationKind } from "../kind.ts";
import { advance, cursorOf, findPart, type Part, type PassedBy, roomIn, waitFor } from "./passed-by.ts";

/**
 * Many runs that were given up are opened again, oldest failure first; those of a schedule without room later.
 * Locks   tenant_quota, where it limits runs; then as the replay of one run, of all the step's runs at once.
 * Time    authority time, after the locks.
 * Writes  as the replay of one run, but for the request key and the audit event: the operation has them.
 * Replay  a letter that is resolved is not found again, and of a failure that came later it is left alone.
 */
export const replay: OperationKind = {
  async step(authority, tx, operation, limit) {
    const quota = await lockRoomForRuns(tx, operation.tenant_id);
    const most = Math.max(1, Math.min(limit, quota.most));
    const { progress, part, pace } = await findPart(authority, tx, operation, most);
    if (part === undefined) {
      const waits = progress.passedBy.length > 0 ? await waitFor(tx, progress) : {};
      return { ...cursorOf(operation, progress), ...waits, ...NOTHING_DONE };
    }
    // Looked at first: one whose last runs took up a quota has come to its end, and waits for none.
    if (quota.most < 1 && part.meant.length > 0) {
      return { cursor: operation.cursor, ...waitForQuota(quota.excess!), ...NOTHING_DONE };
    }
    const { tenant_id: tenantId, actor, reason, id: operationId } = operation;
    const ids = part.meant.map((one) => one.id);
    const keys = await readLetterKeys(tx, tenantId, ids);
    const failedAt = new Map(part.meant.map((one) => [one.id, one.at]));
    const graves = await lockGraves(authority, tx, tenantId, keys, REPLAYABLE_TOGETHER, failedAt);
    const scheduleOf = new Map(keys.map((key) => [key.run_id, key.schedule_id]));
    const taken = await takeInOrder(authority, tx, graves, { part, scheduleOf, pace });
    if (taken.isStopped && taken.rest === part.after) lookAgain();
    const opened = taken.ids.filter((id) => !graves.outcomes.has(id));
    await reopen(authority, tx, graves, opened, { actor, reason, operationId });
    await countRequested(tx, tenantId, quota, opened.length);
    authority.metrics.replays.inc(opened.length);
    return {
      ...cursorOf(operation, advance(part, taken.rest, taken.passedBy)),
      done: opened.length,
      failed: 0,
      tally: countNames(taken.ids.map((id) => graves.outcomes.get(id)?.kind ?? "not-found")),
      intends: opened.length > 0,
    };
  },

  async passOver(authority, tx, operation) {
    const { progress, part } = await findPart(authority, tx, operation, 1);
    const after = part === undefined ? progress : advance(part, part.rest, []);
    const failed = part?.meant.length ?? 0;
    return { ...cursorOf(operation, after), done: 0, failed, tally: {}, intends: false };
  },
};

type Taken = {
  /** Runs that are decided now, in the order of failures. */
  ids: Uuid[];
  /** Schedules that have no room. */
  passedBy: PassedBy[];
  /** Up to where; undefined: to the end. */
  rest: LetterPlace | undefined;
  /** Before a run that is moving. */
  isStopped: boolean;
};

/**
 * As many as can be decided now without leaving one behind that is not remembered, and without more runs of a schedule
 * waiting than the pace makes in a second: its on-time runs would wait behind them.
 */
async function takeInOrder(
  authority: Authority,
  tx: Transaction,
  graves: Graves,
  { part, scheduleOf, pace }: { part: Part; scheduleOf: ReadonlyMap<Uuid, Uuid | null>; pace: number },
): Promise<Taken> {
  const rooms = new Map<Uuid, number>();
  const ids: Uuid[] = [];
  const passedBy: PassedBy[] = [];
  let before = part.after;
  for (const place of part.meant) {
    const scheduleId = scheduleOf.get(place.id) ?? undefined;
    const isPassedBy = passedBy.some((one) => one.scheduleId === scheduleId);
    const outcome = graves.outcomes.get(place.id);
    if (!isPassedBy && outcome?.kind === "undecided") return { ids, passedBy, rest: before, isStopped: true };
    if (!isPassedBy && outcome === undefined && scheduleId !== undefined) {
      const room = rooms.get(scheduleId) ?? (await roomIn(authority, tx, graves.cursors.get(scheduleId)!, pace));
      rooms.set(scheduleId, room - 1);
      if (room <= 0) passedBy.push({ ...before, scheduleId });
      else ids.push(place.id);
    } else if (!isPassedBy) ids.push(place.id);
    before = place;
  }
  return { ids, passedBy, rest: part.rest, isStopped: false };
}
