import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { transientFailure } from "../../src/handlers/outcome.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { readHandedOver, startNode } from "../support/system.ts";

/** A worker process whose jobs do, each in its way, what ends a process of Node. */
const no = () => {
  throw new Error("no");
};

const DEEDS: Readonly<Record<string, (signal: AbortSignal) => unknown>> = {
  patient: () => sleep(2_000),
  "number as code": () => Promise.reject(transientFailure(503 as never, "upstream")),
  "proxy thrown": () => Promise.reject(new Proxy({}, { getPrototypeOf: no, get: no })),
  "stray rejection": () => void Promise.reject(new Error("stray")),
  "stray rejection of a proxy": () => void Promise.reject(new Proxy({}, { getPrototypeOf: no, get: no })),
  "process.exit": () => process.exit(1),
  "process.exit of a library that hides its failure": async () => {
    await sleep(1);
    try {
      process.exit(1);
    } catch {}
  },
  "process.exit in a timer": () => void setTimeout(() => process.exit(1), 10),
  "process.abort": () => process.abort(),
  "throw in a timer": () => void setTimeout(no, 10),
  "throwing abort listener": (signal) => {
    signal.addEventListener("abort", no);
    return sleep(60_000, undefined, { signal });
  },
};

const hostile = defineJob({
  name: "test.noop",
  version: 1,
  input: z.object({ deed: z.string() }),
  async run(ctx, { deed }) {
    await DEEDS[deed]!(ctx.signal);
  },
});

const node = await startNode({ ...readHandedOver(process.env.PUNCTUAL_TEST_NODE!).options, jobs: [hostile] });
process.on("SIGTERM", () => void node.stop().then(() => process.exit(0)));
process.once("disconnect", () => process.exit(1));
