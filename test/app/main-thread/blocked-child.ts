import { execSync } from "node:child_process";
import { z } from "zod";
import { defineJob, defineThreadJob } from "../../../src/handlers/registry.ts";
import { readHandedOver, startNode } from "../../support/system.ts";

/** A worker process whose jobs hold up its event loop, each in its way, or have a thread for it. */

function burn(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

const DEEDS: Readonly<Record<string, (ms: number) => unknown>> = {
  computing: burn,
  "waiting in the kernel": (ms) => execSync(`sleep ${ms / 1_000}`),
};

const blocking = defineJob({
  name: "test.noop",
  version: 1,
  input: z.object({ deed: z.string(), ms: z.number() }),
  run: (_ctx, { deed, ms }) => DEEDS[deed]!(ms) as undefined,
});
const threaded = defineThreadJob({
  name: "test.thread",
  version: 1,
  input: z.object({ deed: z.string() }),
  module: new URL("../../handlers/threads/deeds.ts", import.meta.url).href,
});

const node = await startNode({
  ...readHandedOver(process.env.PUNCTUAL_TEST_NODE!).options,
  jobs: [blocking, threaded],
});
process.on("SIGTERM", () => void node.stop().then(() => process.exit(0)));
process.once("disconnect", () => process.exit(1));
