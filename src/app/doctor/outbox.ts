import type { Instant } from "../../kernel/clock.ts";
import { sql } from "../../store/database.ts";
import { type Check, finding, ok, showAge } from "./check.ts";

const LATE_MS = 60_000;

// Rows of a tenant at its limit wait on purpose, those of its own workers for these; of one whose runs have all ended (canceled, say) only the name is left.
const READ = sql(
  "doctor_outbox",
  `select clock_timestamp() as now, o.id, o.tenant_id, o.class, o.available_at
     from outbox o left join usage u on u.tenant_id = o.tenant_id and u.class = o.class
    where o.available_at <= statement_timestamp() and o.kind = 'run' and o.class <> 'remote' and u.start_rate_per_second is null
      and (u.max_running is null or u.running < u.max_running)
      and exists (select from live_run l where l.id = any(o.runs))
    order by o.available_at limit 1`,
);

export const outboxCheck: Check = {
  id: "outbox",
  name: "what can start is dispatched",
  async examine({ careful }) {
    const [row] = await careful.query<{ now: Instant; available_at: Instant }>(READ);
    if (row === undefined) return ok("the outbox is empty");
    const lateMs = row.now - row.available_at;
    if (lateMs < LATE_MS) return ok(`the oldest outbox row waits for ${showAge(lateMs)}`);
    return finding(
      `an outbox row that could start waits for ${showAge(lateMs)}`,
      "its runs start late, or not at all",
      "see that a worker is alive with free slots and, with Redis, a relay and a sweeper; read their logs",
      [row],
    );
  },
};
