import type { Fence } from "../../../domain/fence.ts";
import type { ObjectState } from "../../../domain/objects/life.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** The registry of result bytes: a row exists before its upload begins. */
export type ObjectRow = {
  id: Uuid;
  tenant_id: Uuid;
  run_id: Uuid;
  attempt: number;
  fence: Fence;
  name: string;
  state: ObjectState;
  uri: string;
  version: string | null;
  sha256: string | null;
  size: bigint | null;
  media_type: string;
  granted_until: Instant;
};

const COLUMNS =
  "id, tenant_id, run_id, attempt, fence, name, state, uri, version, sha256, size, media_type, granted_until";

const LOCK = sql("objects_lock", `select ${COLUMNS} from object where id = any($1::uuid[]) order by id for update`);
const LOCK_UNUSED = sql(
  "objects_lock_unused",
  `select ${COLUMNS} from object
    where run_id = $1 and fence = $2 and name = $3 and state in ('granted', 'staged')
    order by id limit 1 for update`,
);
const COUNT_OUTPUTS = sql(
  "objects_count_outputs",
  `select count(*)::int as n
     from (select from object where run_id = $1 and fence = $2 and kind = 'output' limit $3) o`,
);
const REFERENCE = sql(
  "objects_reference",
  "update object set state = 'referenced', referenced_at = $2 where id = any($1::uuid[])",
);
const INSERT = sql(
  "objects_insert",
  `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, media_type, granted_until)
   values ($1, $2, $3, $4, $5, $6, 'granted', $7, $8, $9)`,
);
const STAGE = sql(
  "objects_stage",
  `update object set state = 'staged', uri = $2, version = $3, sha256 = $4, size = $5 where id = $1`,
);

export async function lockObjects(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, ObjectRow>> {
  if (ids.length === 0) return new Map();
  const rows = await tx.query<ObjectRow>(LOCK, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** What the attempt was granted under this name before and has not published. */
export async function lockUnused(
  tx: Queryable,
  of: { runId: Uuid; fence: Fence; name: string },
): Promise<ObjectRow | undefined> {
  return (await tx.query<ObjectRow>(LOCK_UNUSED, [of.runId, of.fence, of.name]))[0];
}

/** How many outputs an attempt was granted, `most` at most. */
export async function countOutputs(tx: Queryable, of: { runId: Uuid; fence: Fence }, most: number): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT_OUTPUTS, [of.runId, of.fence, most]))[0]!.n;
}

export async function referenceObjects(tx: Queryable, ids: readonly Uuid[], nowAt: Instant): Promise<void> {
  if (ids.length > 0) await tx.query(REFERENCE, [ids, instantText(nowAt)]);
}

export async function insertObject(
  tx: Queryable,
  object: Pick<
    ObjectRow,
    "id" | "tenant_id" | "run_id" | "attempt" | "fence" | "name" | "uri" | "media_type" | "granted_until"
  >,
): Promise<void> {
  const { id, tenant_id, run_id, attempt, fence, name, uri, media_type, granted_until } = object;
  await tx.query(INSERT, [id, tenant_id, run_id, attempt, fence, name, uri, media_type, instantText(granted_until)]);
}

export async function stageObject(
  tx: Queryable,
  id: Uuid,
  facts: { uri: string; version: string | null; sha256: string; size: number },
): Promise<void> {
  await tx.query(STAGE, [id, facts.uri, facts.version, facts.sha256, facts.size]);
}
