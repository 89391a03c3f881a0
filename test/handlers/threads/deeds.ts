import type { JobContext, JobResult } from "../../../src/handlers/context.ts";
import { permanentFailure } from "../../../src/handlers/outcome.ts";

/** What jobs do in a thread, good and bad. It runs there. */
const DEEDS: Readonly<Record<string, (ctx: JobContext, posted: Int32Array<SharedArrayBuffer>) => unknown>> = {
  async good(ctx) {
    ctx.progress({ rows: 12n });
    ctx.log.warn({ rows: 3 }, "three rows");
    console.log("printed");
    ctx.capture(Buffer.from("captured\n"));
    const ids: string[] = [];
    for await (const runs of ctx.read.runsBetween(ctx.run.tenantId, 0, ctx.run.scheduledAt)) {
      ids.push(...runs.map((run) => run.id));
    }
    const text = `${ctx.run.id} ${ctx.run.fence} ${ids.join()}`;
    return { output: { name: "report.txt", mediaType: "text/plain", bytes: pages(text) } };
  },
  "a failure of its own": () => {
    throw permanentFailure("no-such-account", "the bank does not know it");
  },
  "an error that cannot be sent": () => {
    throw Object.assign(new Error("odd"), { handle: () => {}, self: globalThis });
  },
  "a result that is none": () => ({ rows: () => 1 }),
  detached: () => ({ detached: { callbackWithinMs: 5_000 } }),
  "an output that is refused": (ctx) => ctx.output("../secret", Buffer.from("x"), "text/plain"),
  "an output that breaks": () => ({ output: { name: "r", mediaType: "text/plain", bytes: broken() } }),
  "an endless loop": () => {
    for (;;);
  },
  "a loop that asks its signal": (ctx) => {
    for (;;) ctx.signal.throwIfAborted();
  },
  "a throw in a timer": () => {
    setTimeout(() => {
      throw new Error("thrown in a timer");
    }, 5);
    return new Promise(() => {});
  },
  "a stray rejection": () => {
    void Promise.reject(new Error("nobody waits for it"));
    return new Promise(() => {});
  },
  "process.exit": () => process.exit(3),
  "too many objects": () => {
    const all: unknown[] = [];
    for (;;) all.push({ n: all.length, text: `number ${all.length}` });
  },
  "too large an array": () => {
    let all = [1, 2, 3];
    for (;;) all = all.concat(all);
  },
  "too many buffers": async () => {
    const all: Buffer[] = [];
    for (;;) {
      all.push(Buffer.alloc(4_000_000, 1));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
  "a flood of lines": (ctx) => {
    const untilMs = performance.now() + 500;
    let lines = 0;
    while (performance.now() < untilMs) {
      ctx.capture(`line ${lines++}\n`);
      ctx.progress("x".repeat(100_000_000 / 1_000));
    }
    ctx.capture(new Uint8Array(300_000));
  },
  "counted lines": (ctx, posted) => {
    for (let n = 0; n < 5_000; n++) {
      ctx.capture("x");
      Atomics.add(posted, 0, 1);
    }
  },
  "something left behind": () => {
    setTimeout(() => {
      throw new Error("left behind by another run");
    }, 200);
  },
  patient: (ctx) =>
    new Promise((resolve, reject) => {
      setTimeout(resolve, 600);
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
    }),
};

async function* pages(text: string) {
  yield Buffer.from(text);
  yield Buffer.alloc(200_000, "x");
}

async function* broken() {
  yield Buffer.from("page 1");
  throw new Error("page 2 is missing");
}

type Input = { deed: string; posted?: Int32Array<SharedArrayBuffer> };

export function run(ctx: JobContext, { deed, posted = new Int32Array(new SharedArrayBuffer(4)) }: Input) {
  return DEEDS[deed]!(ctx, posted) as Promise<JobResult>;
}
