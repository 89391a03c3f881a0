import type { V1Job, V1Pod } from "@kubernetes/client-node";
import { type JobFailure, permanentFailure, transientFailure } from "../../outcome.ts";
import type { Phase } from "../engine.ts";

/** Why a Pod that waits will wait for ever, or as good as that. */
const WAITS_FOR_GOOD: Readonly<Record<string, (message: string) => JobFailure>> = {
  ErrImagePull: (message) => transientFailure("image-pull-failed", message),
  ImagePullBackOff: (message) => transientFailure("image-pull-failed", message),
  ErrImageNeverPull: (message) => permanentFailure("image-missing", message),
  InvalidImageName: (message) => permanentFailure("image-missing", message),
  CreateContainerConfigError: (message) => permanentFailure("container-not-started", message),
  CreateContainerError: (message) => permanentFailure("container-not-started", message),
  RunContainerError: (message) => permanentFailure("container-not-started", message),
};
const NOT_STARTED = new Set(["StartError", "ContainerCannotRun"]);

/**
 * Where a Job stands, by its one Pod. Undefined: the Pod is lost (its node is gone, or it was evicted).
 * @throws JobFailure for what keeps it from ever starting.
 */
export function phaseOf(job: V1Job, pods: readonly V1Pod[]): Phase | undefined {
  const pod = pods.toSorted((a, b) => createdAt(b) - createdAt(a))[0];
  const state = pod?.status?.containerStatuses?.[0]?.state;
  if (state?.terminated !== undefined) {
    const { exitCode, reason, message } = state.terminated;
    if (NOT_STARTED.has(reason ?? "")) throw permanentFailure("container-not-started", message ?? reason ?? "");
    const why = reason === "Completed" || reason === "Error" ? message : (message ?? reason);
    return { kind: "ended", exit: { code: exitCode, outOfMemory: reason === "OOMKilled", why } };
  }
  const hasFailed = job.status?.conditions?.some((one) => one.type === "Failed" && one.status === "True") ?? false;
  if (hasFailed || pod?.status?.phase === "Failed") return undefined;
  const waiting = state?.waiting;
  const failure = WAITS_FOR_GOOD[waiting?.reason ?? ""];
  if (failure !== undefined) throw failure(`${waiting!.reason}: ${waiting!.message ?? "the cluster says no more"}`);
  return { kind: "running" };
}

/** Without the Pod: as much as the Job itself knows. */
export function phaseKindOf({ status }: V1Job): Phase["kind"] {
  return (status?.succeeded ?? 0) + (status?.failed ?? 0) > 0 ? "ended" : "running";
}

const createdAt = (pod: V1Pod) => pod.metadata?.creationTimestamp?.getTime() ?? 0;
