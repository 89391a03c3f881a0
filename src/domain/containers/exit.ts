import type { ContainerJob } from "../jobs/container.ts";

/** How a container ended by itself. */
export type Exit = { code: number; outOfMemory: boolean; why?: string | undefined };

export type ExitVerdict = { kind: "succeeded" } | { kind: "failed"; transient: boolean; code: string; message: string };

const KILLED = 128 + 9;
/** What engines and shells say when the command itself could not be run. */
const NOT_STARTED: Readonly<Record<number, string>> = {
  125: "the engine could not run it",
  126: "the command cannot be executed",
  127: "the command was not found",
};

/**
 * What an exit says. Too little memory is for good, as it would be too little again; who else sends SIGKILL (an operator, a
 * machine that goes down) means nothing by it. Not every engine can tell the two apart: Podman on cgroups v1 never says
 * that it was the memory.
 */
export function judgeExit(
  exit: Exit,
  job: Pick<ContainerJob, "permanentExitCodes" | "retryOutOfMemory" | "resources">,
): ExitVerdict {
  const { code, outOfMemory } = exit;
  if (code === 0) return { kind: "succeeded" };
  const permanent = job.permanentExitCodes.includes(code);
  const why = exit.why === undefined || exit.why === "" ? "" : ` (${exit.why})`;
  const limit = `its memory limit is ${job.resources.memoryMb} MiB`;
  if (outOfMemory) {
    const message = `the container ran out of memory: ${limit}${why}`;
    return { kind: "failed", transient: job.retryOutOfMemory && !permanent, code: "container-oom", message };
  }
  if (code === KILLED) {
    const message = `the container was killed, perhaps for want of memory: ${limit}${why}`;
    return { kind: "failed", transient: !permanent, code: "container-killed", message };
  }
  const reason = NOT_STARTED[code];
  if (reason !== undefined) {
    const message = `the container ended with exit code ${code}: ${reason}${why}`;
    return { kind: "failed", transient: false, code: "container-not-started", message };
  }
  const message = `the container ended with exit code ${code}${why}`;
  return { kind: "failed", transient: !permanent, code: "container-exit", message };
}
