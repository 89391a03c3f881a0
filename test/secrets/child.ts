import { readConfig } from "../../src/app/config.ts";
import { createCore, openCore } from "../../src/app/core.ts";
import { apiRole } from "../../src/app/roles/api.ts";
import { relayRole } from "../../src/app/roles/relay.ts";
import { schedulerRole } from "../../src/app/roles/scheduler.ts";
import { senderRole } from "../../src/app/roles/sender.ts";
import { sweeperRole } from "../../src/app/roles/sweeper.ts";
import { workerRole } from "../../src/app/roles/worker.ts";
import { createRegistry } from "../../src/handlers/registry.ts";
import { startAll, stopAll } from "../../src/kernel/service.ts";
import { strictTell, tell } from "./jobs.ts";

/** Every role in one process, whose standard error is all that any of them logs. */
const core = createCore(readConfig(JSON.parse(process.env.PUNCTUAL_TEST_CONFIG!)), "test");
await openCore(core);
const api = apiRole(core, createRegistry([tell]), "a secret for tests");
const services = [
  ...workerRole(core, createRegistry([strictTell])),
  ...relayRole(core),
  ...schedulerRole(core),
  ...sweeperRole(core),
  ...senderRole(core, "a secret for tests", api.url),
  api,
];
await startAll(services);
process.on("SIGTERM", () => {
  void stopAll(services)
    .then(() => core.close())
    .then(() => process.exit(0));
});
process.once("disconnect", () => process.exit(1));
process.send!({ url: api.url() });
