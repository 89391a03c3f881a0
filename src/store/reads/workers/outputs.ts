import type { Fence } from "../../../domain/fence.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** An object that an attempt asked to upload. */
export type OutputView = { uri: string; runId: Uuid; fence: Fence };

const FIND = sql("read_output", `select uri, run_id as "runId", fence from object where tenant_id = $1 and id = $2`);

export async function findOutput(db: Queryable, tenantId: Uuid, id: Uuid): Promise<OutputView | undefined> {
  return (await db.query<OutputView>(FIND, [tenantId, id]))[0];
}
