import type { Fence } from "../../domain/fence.ts";
import { bucketOf, mintId, type Uuid } from "../../kernel/ids.ts";
import { lockLiveRuns } from "../../store/rows/live-runs.ts";
import { insertObject } from "../../store/rows/objects.ts";
import type { Authority } from "../authority.ts";

export type UploadGrant = { kind: "granted"; objectId: Uuid } | { kind: "stale-fence" } | { kind: "lease-lapsed" };

/**
 * Registers an object before its upload begins, so that an orphan is always known.
 * Locks   the live run.
 * Time    authority time, after the lock.
 * Writes  object (granted until the attempt's deadline).
 * Replay  another grant; the unused one is cleaned up.
 */
export function grantUpload(
  authority: Authority,
  request: { runId: Uuid; fence: Fence; name: string; key: string; mediaType: string },
): Promise<UploadGrant> {
  return authority.transact("grant-upload", async (tx): Promise<UploadGrant> => {
    const run = (await lockLiveRuns(tx, [request.runId])).get(request.runId);
    const nowAt = await tx.authorityNow();
    if (run?.state !== "running" || run.fence !== request.fence) return { kind: "stale-fence" };
    if (run.lease_until! <= nowAt) return { kind: "lease-lapsed" };
    const objectId = mintId(nowAt, bucketOf(run.id));
    await insertObject(tx, {
      id: objectId,
      tenant_id: run.tenant_id,
      run_id: run.id,
      attempt: run.attempt,
      fence: request.fence,
      name: request.name,
      // Where the upload will be; staging replaces it by what the store answered.
      uri: request.key,
      media_type: request.mediaType,
      granted_until: run.deadline_at!,
    });
    return { kind: "granted", objectId };
  });
}
