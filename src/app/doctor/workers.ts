import { sql } from "../../store/database.ts";
import { countLiveSlots } from "../../store/rows/registry.ts";
import { type Check, finding, ok } from "./check.ts";

/** What waits for tenants' own workers is for those tenants to see to. */
const WAITING = sql(
  "doctor_waiting",
  `select class, count(*)::int as runs from (
     select class from live_run where state in ('queued', 'retrying') and class <> 'remote' and not_before <= statement_timestamp() limit 10000) w
    group by class order by class`,
);

/** For so long a blocked event loop is news. */
const BLOCKED = sql(
  "doctor_blocked",
  `select name, blocked_ms::int as "blockedMs", blocked_at as "blockedAt" from worker
    where blocked_at > statement_timestamp() - interval '1 hour' order by blocked_at desc limit 20`,
);

export const workersCheck: Check = {
  id: "workers",
  name: "a worker is alive for what waits",
  async examine({ db, careful }) {
    const slots = (await countLiveSlots(db)).filter((one) => one.slots > 0);
    const waiting = await careful.query<{ class: string; runs: number }>(WAITING);
    const unserved = waiting.filter((one) => !slots.some((slot) => slot.class === one.class));
    if (slots.length === 0) {
      return finding("no worker is alive", "nothing that is due starts", "start `punctual worker`", waiting);
    }
    if (unserved.length > 0) {
      return finding(
        `runs of class ${unserved.map((one) => one.class).join(", ")} wait, and no living worker has slots for them`,
        "these runs do not start",
        "start a worker with slots for the class (PUNCTUAL_SLOTS_SHORT, _LONG, _MEMORY)",
        unserved,
      );
    }
    const [blocked, ...others] = await careful.query<{ name: string; blockedMs: number }>(BLOCKED);
    if (blocked !== undefined) {
      const more = others.length === 0 ? "" : `, and others too`;
      return finding(
        `the event loop of ${blocked.name} was blocked for ${(blocked.blockedMs / 1000).toFixed(1)} s within the last hour${more}`,
        "meanwhile it sends no heartbeat; after a lease without one all its attempts are lost",
        "its log says by which jobs and where: let them compute in a thread (docs/jobs.md)",
        [blocked, ...others],
      );
    }
    return ok(`slots: ${slots.map((one) => `${one.class} ${one.slots}`).join(", ")}`);
  },
};
