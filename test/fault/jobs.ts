import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { defineJob } from "../../src/handlers/registry.ts";

/** Jobs that leave a trace outside the system, a line an attempt; the first attempt may take a while. */
const append = defineJob({
  name: "test.append",
  version: 1,
  input: z.object({ file: z.string(), firstMs: z.number() }),
  async run(ctx, { file, firstMs }) {
    appendFileSync(file, `${ctx.run.id} ${ctx.run.attempt} ${process.pid}\n`);
    if (ctx.run.attempt === 1) await sleep(firstMs, undefined, { signal: ctx.signal });
  },
});

export const JOBS = [append];
