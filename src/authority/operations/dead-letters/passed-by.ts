import { MOST_OPEN_RUNS, roomOfStep } from "../../../domain/backfill.ts";
import { showId, type Uuid } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import { type CursorRow, readCursor } from "../../../store/rows/cursors.ts";
import type { LetterPlace } from "../../../store/rows/dead-letters.ts";
import { countOpenRuns } from "../../../store/rows/operations/backfill.ts";
import type { OperationRow } from "../../../store/rows/operations/operations.ts";
import type { Authority } from "../../authority.ts";
import { overlapFor } from "../../dead-letters/reopen.ts";
import { revisionOf } from "../../revisions.ts";
import type { Step } from "../kind.ts";
import { placeOf, type WalkedPart, walkOn } from "./walk.ts";

/**
 * A replay passes by the letters of a schedule that has no room, and comes back for them: one walk goes over all letters,
 * and each schedule that was passed by has a walk of its own from there, once the others have had their turn.
 */

/** A schedule that was passed by, and the place before its first letter that is left. */
export type PassedBy = LetterPlace & { scheduleId: Uuid };

type Progress = {
  /** Where the walk over all letters goes on; undefined: it has come to the end. */
  place: LetterPlace | undefined;
  /** Those that wait longest first. */
  passedBy: readonly PassedBy[];
};

/** The cursor, as JSON: a place alone says that nothing was passed by. */
type Cursor = LetterPlace & { passedBy?: readonly PassedBy[]; isWalked?: boolean };

/** So many are remembered; where more have no room, those after them wait for one of these. */
const MOST_PASSED_BY = 100;
/** How long it waits for one of them to have room. */
const WAIT_MS = 1_000;
const MOST_NAMED = 3;

/** The next letters, of all schedules that were not passed by, or of one that was. */
export type Part = WalkedPart & {
  progress: Progress;
  /** Where the walk begins. */
  after: LetterPlace;
  of: PassedBy | undefined;
};

/** The next letters, `most` at most; no part: nothing can be done now, or all is done. */
export async function findPart(
  authority: Authority,
  tx: Transaction,
  operation: OperationRow,
  most: number,
): Promise<{ progress: Progress; part: Part | undefined; pace: number }> {
  const pace = operation.pace_per_second ?? most;
  const limit = Math.min(most, pace);
  let { place, passedBy } = progressOf(operation);
  if (place !== undefined && passedBy.length < MOST_PASSED_BY) {
    const without = passedBy.map((one) => one.scheduleId);
    const walked = await walkOn(tx, operation, limit, { after: place, without });
    const progress = { place, passedBy };
    if (!isEnd(walked)) return { progress, part: { ...walked, progress, after: place, of: undefined }, pace };
    place = undefined;
  }
  for (const of of passedBy) {
    const { scheduleId } = of;
    const walked = await walkOn(tx, operation, limit, { after: of, scheduleId });
    if (isEnd(walked)) passedBy = passedBy.filter((one) => one !== of);
    else if (walked.meant.length === 0 || (await hasRoom(authority, tx, scheduleId, pace))) {
      const progress = { place, passedBy };
      return { progress, part: { ...walked, progress, after: of, of }, pace };
    }
  }
  return { progress: { place, passedBy }, part: undefined, pace };
}

function isEnd({ meant, rest }: WalkedPart): boolean {
  return meant.length === 0 && rest === undefined;
}

/** Of a schedule that is not there any more its letters are refused, one by one. */
async function hasRoom(authority: Authority, tx: Transaction, scheduleId: Uuid, pace: number): Promise<boolean> {
  const cursor = await readCursor(tx, scheduleId);
  return cursor === undefined || (await roomIn(authority, tx, cursor, pace)) > 0;
}

/** How many more runs of a schedule may be opened now: as many as the pace makes in a second may wait. */
export async function roomIn(authority: Authority, tx: Transaction, cursor: CursorRow, pace: number): Promise<number> {
  await authority.revisions.load(tx, [revisionOf(cursor)]);
  const { open, blocked } = await countOpenRuns(tx, cursor.schedule_id, MOST_OPEN_RUNS);
  return roomOfStep(overlapFor(authority, cursor), pace, open, blocked, MOST_OPEN_RUNS);
}

/** Progress once the part was walked up to `rest` (undefined: to its end), passing by `more`. */
export function advance(part: Part, rest: LetterPlace | undefined, more: readonly PassedBy[]): Progress {
  const { of, progress } = part;
  if (of === undefined) return { place: rest, passedBy: [...progress.passedBy, ...more] };
  const others = progress.passedBy.filter((one) => one !== of);
  const next = more[0] ?? (rest === undefined ? undefined : { ...rest, scheduleId: of.scheduleId });
  return { place: progress.place, passedBy: next === undefined ? others : [...others, next] };
}

export function cursorOf(operation: OperationRow, { place, passedBy }: Progress): Pick<Step, "cursor" | "end"> {
  if (place === undefined && passedBy.length === 0) return { cursor: operation.cursor, end: "done" };
  const cursor: Cursor = { ...(place ?? placeOf(operation)), passedBy, isWalked: place === undefined };
  return { cursor };
}

/** What is waited for, where nothing can be done. */
export async function waitFor(tx: Transaction, { passedBy }: Progress): Promise<{ waitMs: number; message: string }> {
  const named = await Promise.all(
    passedBy.slice(0, MOST_NAMED).map(async ({ scheduleId }) => {
      const { held } = await countOpenRuns(tx, scheduleId, MOST_OPEN_RUNS);
      return `${showId("sch", scheduleId)}${held === 0 ? "" : ` (paused by a failure: ${held} wait for its resume)`}`;
    }),
  );
  const others = passedBy.length - named.length;
  const all = named.join(", ") + (others === 0 ? "" : ` and ${others} more schedules`);
  return { waitMs: WAIT_MS, message: `it waits while many runs of ${all} are open` };
}

function progressOf(operation: OperationRow): Progress {
  const { passedBy = [], isWalked = false } = (operation.cursor as Cursor | null) ?? {};
  return { place: isWalked ? undefined : placeOf(operation), passedBy };
}
