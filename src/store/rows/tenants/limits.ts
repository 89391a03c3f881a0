import { CLASSES } from "../../../domain/definition.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { lockUsage } from "../usage.ts";

/** What a tenant is held to, class by class: nothing runs while it is suspended, else what its quota says. */
const APPLY = sql(
  "limits_apply",
  `update usage u set max_running = l.max_running, start_rate_per_second = l.start_rate_per_second
     from (select k.class, case t.status when 'suspended' then 0 else q.max_running end as max_running,
                  q.start_rate_per_second
             from tenant t cross join unnest($2::text[]) as k (class)
             left join quota q on q.tenant_id = t.id and q.class = k.class
            where t.id = $1) l
    where u.tenant_id = $1 and u.class = l.class`,
);

/**
 * Writes a tenant's limits to where claims decide, making rows that are missing. Status and quota are read in a statement
 * of its own, under the rows' locks: of a suspension and a new quota at once, the later one sees the other.
 */
export async function applyLimits(tx: Queryable, tenantId: Uuid, classes: readonly string[] = CLASSES): Promise<void> {
  await lockUsage(
    tx,
    classes.map((class_) => ({ tenantId, class: class_ })),
  );
  await tx.query(APPLY, [tenantId, classes]);
}
