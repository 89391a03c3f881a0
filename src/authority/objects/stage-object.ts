import type { Uuid } from "../../kernel/ids.ts";
import { lockObjects, stageObject as writeStaged } from "../../store/rows/objects.ts";
import type { Authority } from "../authority.ts";

export type StageOutcome = { kind: "staged" } | { kind: "no-grant"; found: string };

/**
 * Records that an upload arrived and was verified (version, size, sha256): only now may a completion name it.
 * Locks   the object.
 * Time    authority time, after the lock.
 * Writes  object → staged.
 * Replay  the same facts: staged.
 */
export function stageObject(
  authority: Authority,
  request: { objectId: Uuid; uri: string; version: string | null; sha256: string; size: number },
): Promise<StageOutcome> {
  return authority.transact("stage", async (tx): Promise<StageOutcome> => {
    const object = (await lockObjects(tx, [request.objectId])).get(request.objectId);
    const nowAt = await tx.authorityNow();
    if (object === undefined) return { kind: "no-grant", found: "no such object" };
    const again = object.state === "staged" && object.sha256 === request.sha256;
    if (object.state !== "granted" && !again) return { kind: "no-grant", found: object.state };
    if (object.granted_until <= nowAt) return { kind: "no-grant", found: "an expired grant" };
    await writeStaged(tx, request.objectId, request);
    return { kind: "staged" };
  });
}
