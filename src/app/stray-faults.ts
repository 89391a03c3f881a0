import { describeThrown } from "../handlers/outcome.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";

/**
 * Keeps a process that runs jobs alive when one of them leaves a fault behind: a promise nobody awaits, a throw in a
 * timer, an abort listener that throws. Node would end the process, and with it the attempts of every other tenant,
 * again at each retry of that job.
 *
 * Going on is safe here because nothing that counts is in memory: what the authority is told is guarded by fences, and
 * what a fault might leave hanging is ended by its lease. Processes without jobs keep Node's way: there a stray fault is
 * ours, and a restart is the answer. `scrub`: nobody knows which attempt it was, so all secrets in use are taken out.
 */
export function createStrayFaults(log: Log, scrub: (text: string) => string): Service {
  const hear = (thrown: unknown, origin: string) =>
    log.error(
      { origin, reason: scrub(describeThrown(thrown)), stack: scrub(findStack(thrown)) },
      "a fault was left behind, probably by a job; the process goes on",
    );
  const onRejection = (thrown: unknown) => hear(thrown, "unhandledRejection");
  return {
    name: "stray-faults",
    async start() {
      process.on("uncaughtException", hear);
      process.on("unhandledRejection", onRejection);
    },
    async stop() {
      process.off("uncaughtException", hear);
      process.off("unhandledRejection", onRejection);
    },
  };
}

/** Where it came from is all there is to find the job by. A throw in here would end the process after all. */
function findStack(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.stack) : "none";
  } catch {
    return "none";
  }
}
