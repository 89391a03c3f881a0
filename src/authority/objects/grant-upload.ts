import type { Fence } from "../../domain/fence.ts";
import type { Instant } from "../../kernel/clock.ts";
import { bucketOf, mintId, type Uuid } from "../../kernel/ids.ts";
import { countOutputs, insertObject, lockUnused } from "../../store/rows/objects/objects.ts";
import { lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";

export type UploadGrant =
  /** A permission given away on this must end at `untilAt`: the lease's end. A renewed lease gets another one. */
  | { kind: "granted"; objectId: Uuid; untilAt: Instant }
  | { kind: "stale-fence" }
  | { kind: "lease-lapsed" }
  /** The attempt has `MOST_OUTPUTS` already. */
  | { kind: "too-many-outputs" };

/** Of one attempt: one of them is the result, and the others are kept until it ends. */
export const MOST_OUTPUTS = 100;

/**
 * Registers an object before its upload begins, so that an orphan is always known.
 * Locks   the live run, the object that was granted before.
 * Time    authority time, after the locks.
 * Writes  object (granted; no permission of this attempt outlasts its deadline, whatever becomes of its lease).
 * Replay  the same grant, as long as nothing was published under it: a key has one row.
 */
export function grantUpload(
  authority: Authority,
  request: { runId: Uuid; fence: Fence; name: string; uri: string; mediaType: string },
): Promise<UploadGrant> {
  return authority.transact("grant-upload", async (tx): Promise<UploadGrant> => {
    const run = (await lockLiveRuns(tx, [request.runId])).get(request.runId);
    const before = await lockUnused(tx, request);
    const nowAt = await tx.authorityNow();
    if (run?.state !== "running" || run.fence !== request.fence) return { kind: "stale-fence" };
    if (run.lease_until! <= nowAt) return { kind: "lease-lapsed" };
    const objectId = before?.id ?? mintId(nowAt, bucketOf(run.id));
    if (before === undefined) {
      if ((await countOutputs(tx, request, MOST_OUTPUTS)) >= MOST_OUTPUTS) return { kind: "too-many-outputs" };
      await insertObject(tx, {
        id: objectId,
        tenant_id: run.tenant_id,
        run_id: run.id,
        attempt: run.attempt,
        fence: request.fence,
        name: request.name,
        uri: request.uri,
        media_type: request.mediaType,
        granted_until: run.deadline_at!,
      });
    }
    return { kind: "granted", objectId, untilAt: run.lease_until! };
  });
}
