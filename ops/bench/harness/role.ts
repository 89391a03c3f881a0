/** One process of the system under measurement: `node role.ts <role,role…>`; prints `ready`, ends on SIGTERM. */
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { readConfig } from "../../../src/app/config.ts";
import { createCore, openCore } from "../../../src/app/core.ts";
import { workerRole } from "../../../src/app/roles/worker.ts";
import { type RoleName, servicesOf } from "../../../src/app/run-role.ts";
import { askedToEnd } from "../../../src/app/shutdown.ts";
import { createRegistry, defineJob } from "../../../src/handlers/registry.ts";
import { startAll, stopAll } from "../../../src/kernel/service.ts";

const noop = defineJob({ name: "bench.noop", version: 1, input: z.unknown(), run: () => undefined });
const hurried = new AbortController();
process.on("message", (message) => message === "hurry" && hurried.abort());
/** Holds its slot for so long, and does nothing. */
const sleep = defineJob({
  name: "bench.sleep",
  version: 1,
  input: z.object({ ms: z.number() }),
  run: (_, { ms }) => setTimeout(ms, undefined, { signal: hurried.signal }).catch(() => undefined),
});
const ended = askedToEnd();
const roles = (process.argv[2] ?? "").split(",") as RoleName[];
const core = createCore(readConfig(process.env), roles.join("+"));
const passes = timePasses();
await openCore(core);
const services = roles.flatMap((role) =>
  role === "worker" ? workerRole(core, createRegistry([noop, sleep])) : servicesOf(role, core),
);
await startAll(services);
process.send?.("ready");
await ended;
await stopAll(services);
process.send?.({ passes: passes() });
if (process.env.BENCH_METRICS) console.error(await core.metrics.registry.metrics());
await core.close();
process.exit(0);

/** Buckets do not tell how long the longest pass was: every one is kept beside the histogram. */
function timePasses(): () => Record<string, { passes: number; p99: number; max: number }> {
  const seconds = new Map<string, number[]>();
  const { passSeconds } = core.metrics;
  const observe = passSeconds.observe.bind(passSeconds) as (labels: { loop: string }, value: number) => void;
  passSeconds.observe = ((labels: { loop: string }, value: number) => {
    const known = seconds.get(labels.loop);
    if (known === undefined) seconds.set(labels.loop, [value]);
    else known.push(value);
    observe(labels, value);
  }) as typeof passSeconds.observe;
  return () =>
    Object.fromEntries(
      [...seconds].map(([loop, all]) => {
        const sorted = all.toSorted((a, b) => a - b);
        const ms = (n: number) => Math.round(sorted[n]! * 10_000) / 10;
        return [loop, { passes: all.length, p99: ms(Math.floor(all.length * 0.99)), max: ms(all.length - 1) }];
      }),
    );
}
