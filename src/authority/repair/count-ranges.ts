import { bounded } from "../../domain/materialization.ts";
import { type Counting, countAtOnce, countOn } from "../../domain/planning/count-instants.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";
import type { RevisionKey } from "../revisions.ts";

const FIND = sql(
  "count_ranges_find",
  `select r.schedule_id as "scheduleId", r.revision, v.content, r.from_at as "fromAt", r.to_at as "toAt",
          r.created_at as "createdAt"
     from skip_range r join schedule_revision v using (schedule_id, revision)
    where r.instants is null and (r.created_at, r.schedule_id, r.from_at) > ($1::timestamptz, $2::uuid, $3::timestamptz)
    order by r.created_at, r.schedule_id, r.from_at limit $4`,
);
const SET = sql(
  "count_ranges_set",
  "update skip_range set instants = $3 where schedule_id = $1 and from_at = $2 and instants is null",
);

type Place = { createdAt: Instant; scheduleId: Uuid; fromAt: Instant };
type Range = RevisionKey & Place & { toAt: Instant };

const FROM_THE_START: Place = { createdAt: 0, scheduleId: NIL_ID, fromAt: 0 };

/**
 * How far this process has come: behind which range the next look begins (ranges that cannot be counted stay behind it and
 * are met again on the next round), and ranges that take more than one pass. Whoever starts anew, counts anew.
 */
export type RangeProgress = { after: Place; readonly counting: Map<string, Counting> };

export function nothingCounted(): RangeProgress {
  return { after: FROM_THE_START, counting: new Map() };
}

/** Ranges looked at in one pass. */
const LOOK = 200;

/**
 * Fills in how many instants ranges of skips have that were too long to be counted when they were written: `budget`
 * instants a call at most. Counted by the rule as it reads now; a rule that cannot be computed leaves its ranges uncounted.
 * Locks   the range, by writing it. Writes skip_range. Replay: nothing.
 */
export async function countRanges(
  authority: Authority,
  progress: RangeProgress,
  budget: number,
): Promise<{ counted: number; more: boolean }> {
  const { after, counting } = progress;
  const place = [instantText(after.createdAt), after.scheduleId, instantText(after.fromAt)];
  const ranges = await authority.db.query<Range>(FIND, [...place, LOOK]);
  await authority.revisions.load(authority.db, ranges);
  let left = budget;
  let counted = 0;
  for (const range of ranges) {
    if (left <= 0) return { counted, more: true };
    const key = `${range.scheduleId} ${range.fromAt}`;
    const before = counting.get(key) ?? { at: range.fromAt, counted: 0 };
    const now = goOn(authority, range, before, left);
    if (now !== "uncountable") {
      left -= now.counted - before.counted;
      if (now.at !== null) {
        counting.set(key, now);
        return { counted, more: true };
      }
      counting.delete(key);
      await authority.db.query(SET, [range.scheduleId, instantText(range.fromAt), now.counted]);
      counted++;
    }
    progress.after = range;
  }
  if (ranges.length < LOOK) progress.after = FROM_THE_START;
  return { counted, more: ranges.length === LOOK && counted > 0 };
}

function goOn(authority: Authority, range: Range, before: Counting, most: number): Counting | "uncountable" {
  const { definition } = authority.revisions.get(range);
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) return "uncountable";
  const known = countAtOnce(compiled.rule, range.fromAt, range.toAt);
  if (known !== undefined) return { at: null, counted: known };
  return countOn(
    before,
    range.toAt,
    bounded((at) => nextAfter(compiled.rule, at), definition),
    most,
  );
}
