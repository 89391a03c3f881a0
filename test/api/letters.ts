import { randomUUID } from "node:crypto";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import { readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import type { TestServer } from "./server.ts";

const HINTS = sql("test_hints", "select id from outbox where kind = 'run' and $1::uuid = any(runs)");

/** A worker starts the run and gives it up. */
export async function giveUp(
  { authority, db }: Pick<TestServer, "authority" | "db">,
  shownRunId: string,
  failure = { transient: false, code: "broken", message: "no use" },
): Promise<void> {
  const runId = readId("run", shownRunId)!;
  const rows = await db.query<{ id: bigint }>(HINTS, [runId]);
  const { grants } = await claimRuns(authority, {
    claimId: randomUUID(),
    worker: "worker-a",
    slots: { short: 100, long: 100, memory: 100 },
    hints: rows.map((row) => ({ rowId: row.id, epoch: 1 })),
    repeated: false,
  });
  const fence = grants.find((grant) => grant.runId === runId)!.fence;
  await failRuns(authority, [{ runId, fence, failure }]);
}
