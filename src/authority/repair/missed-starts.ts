import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { findSuspended } from "../../store/rows/tenants/tenants.ts";
import { announce } from "../announce.ts";
import { type Departure, depart } from "../attempts/depart.ts";
import type { Authority } from "../authority.ts";
import { transactOrRefuse } from "../refusal.ts";
import { lockWithSiblings } from "../runs/lock-with-siblings.ts";

const FIND = sql(
  "missed_starts_find",
  `select id from live_run
    where start_deadline < clock_timestamp() and attempt = 0 and state in ('queued', 'blocked') limit $1`,
);

/**
 * Ends runs that have not started by their start deadline. A claim ends them too, but nobody claims what is blocked, or at
 * its tenant's limit, or of a class that no worker has slots for.
 * Locks   live runs and blocked siblings (two rounds; looks again where the second cannot have all).
 * Time    authority time, after the locks: whoever has started meanwhile goes on.
 * Writes  run, live_run, outbox (the oldest blocked sibling). Replay: nothing.
 */
export async function endMissedStarts(authority: Authority, limit: number): Promise<number> {
  const ids = (await authority.db.query<{ id: Uuid }>(FIND, [limit])).map((row) => row.id);
  if (ids.length === 0) return 0;
  const done = await transactOrRefuse(authority, "miss-starts", async (tx) => {
    const live = await lockWithSiblings(tx, ids);
    await authority.faults.reach("miss-starts:locked");
    const nowAt = await tx.authorityNow();
    const suspended = await findSuspended(
      tx,
      [...live.values()].map((run) => run.tenant_id),
    );
    const departures = [...live.values()].flatMap((waiting): Departure[] => {
      // Its label is written when its tenant is resumed, and it does not live to see that.
      const isSuspended = waiting.held_by === "none" && suspended.has(waiting.tenant_id);
      const run = isSuspended ? { ...waiting, held_by: "suspended" as const } : waiting;
      const isLate = run.attempt === 0 && run.start_deadline !== null && run.start_deadline < nowAt;
      if (!isLate || run.state === "running") return [];
      if (run.cancel_requested_at !== null) return [{ kind: "end", run, state: "canceled" }];
      return [{ kind: "end", run, state: "skipped", skipReason: "start-deadline" }];
    });
    const intents = await depart(tx, departures, nowAt);
    return { departures, intents, nowAt };
  });
  announce(authority, done);
  return done.departures.length;
}
