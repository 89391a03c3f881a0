import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { mintId, readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import type { TestServer } from "../server.ts";

/** Claims the run as a worker would, by its outbox row. */
export async function claimRun(server: TestServer, run: string): Promise<Grant> {
  const rows = await server.db.query<{ id: bigint; epoch: number }>(
    sql("test_hint", "select o.id, e.epoch from outbox o, authority_epoch e where $1 = any (o.runs)"),
    [readId("run", run)],
  );
  const outcome = await claimRuns(server.authority, {
    claimId: mintId(1_800_000_000_000, 0),
    worker: "worker-a",
    slots: { short: 1, long: 1, memory: 1 },
    hints: rows.map((row) => ({ rowId: row.id, epoch: row.epoch })),
    repeated: false,
  });
  return outcome.grants[0]!;
}
