import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { lockObjects, stageObject as writeStaged } from "../../store/rows/objects/objects.ts";
import { lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";

export type StageOutcome =
  | { kind: "staged" }
  | { kind: "stale-fence" }
  | { kind: "lease-lapsed" }
  /** There is nothing to stage under this grant. */
  | { kind: "no-grant"; found: string };

/**
 * Records that an upload arrived and was verified (version, size, sha256): only now may a completion name it.
 * Locks   the live run, the object.
 * Time    authority time, after the locks: the permission ends with the lease.
 * Writes  object → staged.
 * Replay  the same facts: staged.
 */
export function stageObject(
  authority: Authority,
  request: {
    runId: Uuid;
    fence: Fence;
    objectId: Uuid;
    uri: string;
    version: string | null;
    sha256: string;
    size: number;
  },
): Promise<StageOutcome> {
  return authority.transact("stage", async (tx): Promise<StageOutcome> => {
    const run = (await lockLiveRuns(tx, [request.runId])).get(request.runId);
    const object = (await lockObjects(tx, [request.objectId])).get(request.objectId);
    await authority.faults.reach("stage:locked");
    const nowAt = await tx.authorityNow();
    if (run?.state !== "running" || run.fence !== request.fence) return { kind: "stale-fence" };
    if (run.lease_until! <= nowAt) return { kind: "lease-lapsed" };
    if (object === undefined) return { kind: "no-grant", found: "no such object" };
    if (object.run_id !== run.id || object.fence !== run.fence) return { kind: "no-grant", found: "another attempt's" };
    const again = object.state === "staged" && object.sha256 === request.sha256;
    if (object.state !== "granted" && !again) return { kind: "no-grant", found: object.state };
    if (object.granted_until <= nowAt) return { kind: "no-grant", found: "an expired grant" };
    await writeStaged(tx, request.objectId, request);
    return { kind: "staged" };
  });
}
