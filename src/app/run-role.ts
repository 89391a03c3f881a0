import { type Service, startAll, stopAll } from "../kernel/service.ts";
import { assertSchemaFits } from "../store/schema-fit.ts";
import type { Config } from "./config.ts";
import { type Core, createCore, openCore } from "./core.ts";
import { registerJobs } from "./jobs.ts";
import { createOpsServer } from "./ops-server.ts";
import { apiRole } from "./roles/api.ts";
import { relayRole } from "./roles/relay.ts";
import { schedulerRole } from "./roles/scheduler.ts";
import { senderRole } from "./roles/sender.ts";
import { sweeperRole } from "./roles/sweeper.ts";
import { workerRole } from "./roles/worker.ts";
import { readSecret } from "./secret.ts";
import { askedToEnd } from "./shutdown.ts";

export const ROLES = ["api", "scheduler", "relay", "sweeper", "sender", "worker"] as const;
export type RoleName = (typeof ROLES)[number];

/** The services of one role. */
export function servicesOf(role: RoleName, core: Core): Service[] {
  if (role === "scheduler") return schedulerRole(core);
  if (role === "relay") return relayRole(core);
  if (role === "sweeper") return sweeperRole(core);
  if (role === "worker") return workerRole(core, registerJobs());
  if (role === "sender") {
    const { PUNCTUAL_PUBLIC_URL, PUNCTUAL_HOST, PUNCTUAL_PORT } = core.config;
    const publicUrl = PUNCTUAL_PUBLIC_URL ?? `http://${PUNCTUAL_HOST}:${PUNCTUAL_PORT}`;
    return senderRole(core, readSecret(core.config), () => publicUrl);
  }
  return [core.tzWatch, apiRole(core, registerJobs(), readSecret(core.config))];
}

/** Runs one role until the process is asked to end. */
export async function runRole(role: RoleName, config: Config): Promise<void> {
  const ended = askedToEnd();
  const core = createCore(config, role);
  await assertSchemaFits(core.db);
  await openCore(core);
  // The API answers the same questions itself.
  const services = role === "api" ? servicesOf(role, core) : [...servicesOf(role, core), createOpsServer(core)];
  await startAll(services);
  core.log.info({ version: core.version, process: core.processName }, "the role has started");
  const reason = await ended;
  core.log.info({ reason }, "the role is stopping");
  await stopAll(services);
  await core.close();
}
