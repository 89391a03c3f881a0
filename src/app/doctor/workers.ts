import { sql } from "../../store/database.ts";
import { countLiveSlots } from "../../store/rows/registry.ts";
import { type Check, finding, ok } from "./check.ts";

const WAITING = sql(
  "doctor_waiting",
  `select class, count(*)::int as runs from (
     select class from live_run where state in ('queued', 'retrying') and not_before <= statement_timestamp() limit 10000) w
    group by class order by class`,
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
    return ok(`slots: ${slots.map((one) => `${one.class} ${one.slots}`).join(", ")}`);
  },
};
