import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { z } from "zod";
import { type DefinedJob, defineJob } from "../../src/handlers/registry.ts";

/** A job `test.count` that counts its executions by run, in this process: what really ran, whatever the tables say. */
export type Ledger = {
  job: DefinedJob;
  readonly executions: number;
  /** Every run was executed once, and there were so many. */
  expectEachOnce(runs: number): void;
};

/** An execution takes `ms`, and lasts until `gate` opens. */
export function createLedger(ms = 0, gate: Promise<void> = Promise.resolve()): Ledger {
  const counts = new Map<string, number>();
  let executions = 0;
  return {
    job: defineJob({
      name: "test.count",
      version: 1,
      input: z.unknown(),
      async run(ctx) {
        executions++;
        counts.set(ctx.run.id, (counts.get(ctx.run.id) ?? 0) + 1);
        await gate;
        if (ms > 0) await sleep(ms, undefined, { signal: ctx.signal });
      },
    }),
    get executions() {
      return executions;
    },
    expectEachOnce(runs) {
      const more = [...counts].filter(([, count]) => count > 1);
      expect({ runs: counts.size, more }).toEqual({ runs, more: [] });
    },
  };
}
