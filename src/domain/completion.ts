import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Fence } from "./fence.ts";

/** What the worker says: "the attempt that holds this fence has finished", with its staged output, if any. */
export type Completion = { runId: Uuid; fence: Fence; output: { objectId: Uuid; sha256: string } | null };

export type CompletionOutcome =
  | { kind: "accepted" }
  /** The same attempt and checksum were accepted before: the saved answer. */
  | { kind: "already-accepted" }
  /** This attempt published another checksum before. */
  | { kind: "result-conflict" }
  /** Another attempt took over, or the run has ended otherwise: the worker stops. */
  | { kind: "stale-fence" }
  /** The fence is current but its lease ran out: a heartbeat revives it, then complete again. */
  | { kind: "lease-lapsed" }
  /** The object is not staged under this attempt's grant. */
  | { kind: "object-unusable"; found: string };

/** The run and, if there is output, its object, both read under their locks. */
export type CompletionView = {
  live: { state: string; fence: Fence | null; leaseUntil: Instant | null } | undefined;
  /** Read plainly when the live row is gone: history never changes back. */
  ended: { state: string; acceptedFence: Fence | null; sha256: string | null } | undefined;
  object: { state: string; runId: Uuid; fence: Fence; sha256: string | null; grantedUntil: Instant } | undefined;
};

export function decideCompletion(claim: Completion, view: CompletionView, nowAt: Instant): CompletionOutcome {
  if (view.live === undefined) {
    if (view.ended?.state === "succeeded" && view.ended.acceptedFence === claim.fence) {
      const same = view.ended.sha256 === (claim.output?.sha256 ?? null);
      return { kind: same ? "already-accepted" : "result-conflict" };
    }
    return { kind: "stale-fence" };
  }
  if (view.live.state !== "running" || view.live.fence !== claim.fence) return { kind: "stale-fence" };
  if (view.live.leaseUntil === null || view.live.leaseUntil <= nowAt) return { kind: "lease-lapsed" };
  if (claim.output !== null) {
    const object = view.object;
    if (object === undefined) return { kind: "object-unusable", found: "no such object" };
    if (object.state !== "staged") return { kind: "object-unusable", found: object.state };
    if (object.runId !== claim.runId || object.fence !== claim.fence) {
      return { kind: "object-unusable", found: "staged by another attempt" };
    }
    if (object.sha256 !== claim.output.sha256) return { kind: "object-unusable", found: "another checksum" };
    if (object.grantedUntil <= nowAt) return { kind: "object-unusable", found: "an expired grant" };
  }
  return { kind: "accepted" };
}
