import type { Authority } from "../authority/authority.ts";
import { findDue, readOutlook } from "../authority/operations/due.ts";
import { OPERATION_KINDS } from "../authority/operations/kinds.ts";
import { stepOperation } from "../authority/operations/step-operation.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Pass } from "../kernel/loop.ts";

/** Steps of one pass, each of another tenant: long work goes on side by side, and never takes a process over. */
const STEPS = 16;
const EVERY_MS = 250;
const IDLE_MS = 5_000;

/**
 * Takes the next steps of long work: backfills and whatever else has a row in `operation`. Any number of processes may;
 * a row is locked for its step.
 */
export function createOperationsDriver(options: { authority: Authority }): Pass {
  const { authority } = options;
  return {
    name: "operations",
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    async pass(signal) {
      let did = 0;
      for (const id of await findDue(authority, OPERATION_KINDS, STEPS)) {
        if (signal.aborted) break;
        try {
          const outcome = await stepOperation(authority, OPERATION_KINDS, id);
          if (outcome === "failed") authority.log.error({ operation: id }, "an operation has failed");
          if (outcome !== "missed" && outcome !== "postponed") did++;
        } catch (error) {
          // One that cannot even be written down must not keep the others waiting.
          authority.log.error({ operation: id, err: error, reason: messageOf(error) }, "a step could not be taken");
        }
      }
      const { open, nextInMs } = await readOutlook(authority);
      authority.metrics.operationsOpen.set(open);
      // What is due and could not be done just now waits for the next look like everything else.
      const nextAt = nextInMs === null || nextInMs === 0 ? undefined : authority.clock.now() + nextInMs;
      return { did, more: did > 0 && nextInMs === 0, nextAt };
    },
  };
}
