import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { firstRunId } from "../first-run-id.ts";
import type { Range } from "../partition-plan.ts";
import { instantText } from "../values.ts";

/** What keeps a period of history: something in it may still change, or is needed by what may. */
export type Hold = {
  why: "open run" | "open dead letter" | "unsettled effect" | "kept result" | "young end";
  id: Uuid;
};

// The small tables first, each by an index but for live_run, which is small: they refuse most periods at once.
const FIND = sql(
  "holds_find",
  `(select 'open run' as why, id from live_run
     where scheduled_at >= $1::timestamptz and scheduled_at < $2::timestamptz limit 1)
   union all
   (select 'open dead letter', run_id from dead_letter
     where run_id >= ${firstRunId("$1")} and run_id < ${firstRunId("$2")} and resolved_at is null limit 1)
   union all
   (select 'unsettled effect', run_id from effect
     where run_id >= ${firstRunId("$1")} and run_id < ${firstRunId("$2")}
       and state in ('pending', 'sending', 'uncertain') limit 1)
   union all
   (select 'kept result', run_id from object
     where run_id >= ${firstRunId("$1")} and run_id < ${firstRunId("$2")}
       and (state <> 'deleted' or pin_until > clock_timestamp()) limit 1)
   limit 1`,
);
const FIND_YOUNG = sql(
  "holds_find_young",
  `select id from run
    where scheduled_at >= $1::timestamptz and scheduled_at < $2::timestamptz
      and (finished_at is null or finished_at >= $3::timestamptz) limit 1`,
);

/** Rows are walked in slices, so that no statement of a large partition is long. */
const SLICE_MS = 3_600_000;

/** The first hold found on the runs of these instants; undefined: all have ended before `endedBefore`, for good. */
export async function findHold(db: Queryable, range: Range, endedBefore: Instant): Promise<Hold | undefined> {
  const [hold] = await db.query<Hold>(FIND, [instantText(range.fromAt), instantText(range.toAt)]);
  if (hold !== undefined) return hold;
  for (let at = range.fromAt; at < range.toAt; at += SLICE_MS) {
    const slice = [instantText(at), instantText(Math.min(at + SLICE_MS, range.toAt)), instantText(endedBefore)];
    const [young] = await db.query<{ id: Uuid }>(FIND_YOUNG, slice);
    if (young !== undefined) return { why: "young end", id: young.id };
  }
  return undefined;
}
