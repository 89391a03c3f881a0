import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { defineJob } from "../../src/handlers/registry.ts";

/** Jobs that leave a trace outside the system, a line an attempt, and may take a while. */
const append = defineJob({
  name: "test.append",
  version: 1,
  input: z.object({ file: z.string(), ms: z.number().default(0) }),
  async run(ctx, { file, ms }) {
    appendFileSync(file, `${ctx.run.id} ${ctx.run.attempt} ${process.pid}\n`);
    if (ms > 0) await sleep(ms, undefined, { signal: ctx.signal });
  },
});

const noop = defineJob({ name: "test.noop", version: 1, input: z.unknown(), run: () => undefined });

export const JOBS = [append, noop];
