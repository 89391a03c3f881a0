import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Who sent a request, and what it said: the same key with another hash is another request. */
export type RequestKey = {
  key: string;
  bodySha256: Buffer;
  /** How else the same body may have been written down: under an earlier key, or without one. */
  alsoSha256?: readonly Buffer[];
};

const INSERT = sql(
  "request_keys_insert",
  `insert into request_key (scope, key, request_sha256, subject) values ($1, $2, $3, $4)
   on conflict (scope, key) do nothing returning subject`,
);
const READ = sql("request_keys_read", "select request_sha256, subject from request_key where scope = $1 and key = $2");

/**
 * Takes a key for `subject`, before anything else in the transaction: the row is the identity. A second caller of the
 * same key waits here for the first one's commit, then gets its subject.
 */
export async function takeRequestKey(
  tx: Queryable,
  scope: Uuid,
  request: RequestKey,
  subject: Uuid,
): Promise<{ kind: "taken" } | { kind: "repeated"; subject: Uuid } | { kind: "reused" }> {
  for (;;) {
    const taken = await tx.query(INSERT, [scope, request.key, request.bodySha256, subject]);
    if (taken.length === 1) return { kind: "taken" };
    const [row] = await tx.query<{ request_sha256: Buffer; subject: Uuid }>(READ, [scope, request.key]);
    // Its time was over, and retention has forgotten it since: now it is a new key.
    if (row === undefined) continue;
    const same = [request.bodySha256, ...(request.alsoSha256 ?? [])];
    return same.some((hash) => row.request_sha256.equals(hash))
      ? { kind: "repeated", subject: row.subject }
      : { kind: "reused" };
  }
}
