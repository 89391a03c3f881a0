import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import type { Authority } from "../authority.ts";

const READ = sql(
  "weights_read",
  `select class, tenant_id as "tenantId", weight from quota where weight <> 1 and class = any($1::text[])`,
);

type Weighed = { class: string; tenantId: Uuid; weight: number };

/** What tenants weigh in each class, for those that do not weigh 1. A plain read: weights decide shares, never limits. */
export async function readWeights(
  authority: Authority,
  classes: readonly string[],
): Promise<Map<string, Map<Uuid, number>>> {
  const rows = await authority.db.query<Weighed>(READ, [classes]);
  const weights = new Map(classes.map((class_) => [class_, new Map<Uuid, number>()]));
  for (const { class: class_, tenantId, weight } of rows) weights.get(class_)!.set(tenantId, weight);
  return weights;
}
