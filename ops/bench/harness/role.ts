/** One process of the system under measurement: `node role.ts <role,role…>`; prints `ready`, ends on SIGTERM. */
import { z } from "zod";
import { readConfig } from "../../../src/app/config.ts";
import { createCore, openCore } from "../../../src/app/core.ts";
import { workerRole } from "../../../src/app/roles/worker.ts";
import { type RoleName, servicesOf } from "../../../src/app/run-role.ts";
import { askedToEnd } from "../../../src/app/shutdown.ts";
import { createRegistry, defineJob } from "../../../src/handlers/registry.ts";
import { startAll, stopAll } from "../../../src/kernel/service.ts";

const noop = defineJob({ name: "bench.noop", version: 1, input: z.unknown(), run: () => undefined });
const ended = askedToEnd();
const roles = (process.argv[2] ?? "").split(",") as RoleName[];
const core = createCore(readConfig(process.env), roles.join("+"));
await openCore(core);
const services = roles.flatMap((role) =>
  role === "worker" ? workerRole(core, createRegistry([noop])) : servicesOf(role, core),
);
await startAll(services);
const atReady = process.cpuUsage();
process.send?.("ready");
await ended;
await stopAll(services);
const cpu = process.cpuUsage(atReady);
process.send?.({ role: roles.join("+"), cpuMs: (cpu.user + cpu.system) / 1000 });
if (process.env.BENCH_METRICS) console.error(await core.metrics.registry.metrics());
await core.close();
process.exit(0);
