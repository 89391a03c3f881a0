import { appendFileSync, existsSync } from "node:fs";
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

/** The first attempt waits until the file `go` is there, whatever it is told meanwhile, and then ends as `first` says. */
const linger = defineJob({
  name: "test.linger",
  version: 1,
  input: z.object({ file: z.string(), go: z.string(), first: z.enum(["succeed", "output", "fail"]) }),
  async run(ctx, { file, go, first }) {
    appendFileSync(file, `${ctx.run.id} ${ctx.run.attempt} ${process.pid}\n`);
    if (ctx.run.attempt > 1) return reportOf("O2");
    while (!existsSync(go)) await sleep(20);
    ctx.progress({ by: "O1" });
    appendFileSync(file, `${ctx.run.id} lingered ${ctx.signal.reason}\n`);
    if (first === "fail") throw new Error("boom");
    return first === "output" ? reportOf("O1") : undefined;
  },
});

function reportOf(text: string) {
  return { output: { name: "report.txt", mediaType: "text/plain", bytes: Buffer.from(text) } };
}

/** Takes its process with it, every time. */
const abort = defineJob({
  name: "test.abort",
  version: 1,
  input: z.object({}),
  run() {
    // What a program asks of itself is refused (see main-thread/exit-guard.ts); nobody refuses this.
    process.kill(process.pid, "SIGKILL");
  },
});

export const JOBS = [append, linger, abort];
