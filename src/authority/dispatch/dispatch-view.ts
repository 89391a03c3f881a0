import { type Queryable, sql } from "../../store/database.ts";
import { countPublished } from "../../store/rows/dispatchable.ts";
import { countLiveSlots } from "../../store/rows/registry.ts";
import { laneKey } from "../../store/rows/usage.ts";
import type { Authority } from "../authority.ts";

const READ_LIMITS = sql(
  "dispatch_view_limits",
  `select tenant_id, class, running, max_running, start_rate_per_second from usage
    where max_running is not null or start_rate_per_second is not null`,
);

type Limited = {
  tenant_id: string;
  class: string;
  running: number;
  max_running: number | null;
  start_rate_per_second: number | null;
};

/** An unlocked look at slots, limits and what stands in Redis, for estimates only. Lanes are keyed `tenant class`. */
export async function readDispatchView(authority: Authority) {
  const db: Queryable = authority.db;
  const [classes, limited, published] = [
    await countLiveSlots(db),
    await db.query<Limited>(READ_LIMITS),
    await countPublished(db),
  ];
  return {
    slots: new Map(classes.map((row) => [row.class, row.slots])),
    p95: new Map(classes.map((row) => [row.class, row.p95_ms ?? Number.POSITIVE_INFINITY])),
    limits: new Map(
      limited.map((row) => [
        laneKey({ tenantId: row.tenant_id, class: row.class }),
        {
          tenantId: row.tenant_id,
          class: row.class,
          running: row.running,
          maxRunning: row.max_running,
          startRate: row.start_rate_per_second,
        },
      ]),
    ),
    published: new Map(
      published.map(({ tenant_id: tenantId, class: class_, runs, late }) => [
        laneKey({ tenantId, class: class_ }),
        { class: class_, runs, late },
      ]),
    ),
  };
}
