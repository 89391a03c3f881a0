import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readInstallation } from "../../authority/containers/installation.ts";
import type { DockerAddress } from "../../handlers/containers/docker/connection.ts";
import type { RegistryAccounts } from "../../handlers/containers/docker/pull.ts";
import type { ContainerEngine } from "../../handlers/containers/engine.ts";
import { runContainers } from "../../handlers/containers/run.ts";
import type { JobKindRunner } from "../../handlers/kinds.ts";
import type { Config } from "../config.ts";
import type { Core } from "../core.ts";
import { containerRulesOf } from "./container-settings.ts";
import { readRegistryAccounts } from "./registry-accounts.ts";

const MIB = 1024 * 1024;

/** What looks after containers: their engine, and by what mark they are ours. */
export type Containers = {
  run: JobKindRunner<"container">;
  open(): Promise<{ engine: ContainerEngine; installation: string }>;
};

/**
 * Undefined: this installation runs no containers. The client of the engine is large, so it is loaded for the first who
 * needs it; so is the installation's mark, which only the database knows.
 */
export function openContainers({ config, clock, db }: Pick<Core, "config" | "clock" | "db">): Containers | undefined {
  const rules = containerRulesOf(config);
  if (rules === undefined) return undefined;
  // A file that cannot be read is found out at the start.
  accountsOf(config);
  let opened: ReturnType<Containers["open"]> | undefined;
  const open = () => {
    opened ??= (async () => ({
      engine: await openEngine(config, clock),
      installation: config.PUNCTUAL_CONTAINER_INSTALLATION ?? (await readInstallation(db)),
    }))().catch((error) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const settings = {
    rules,
    clock,
    mostResultBytes: Math.floor(config.PUNCTUAL_CONTAINER_RESULT_MB * MIB),
    adoptWithinMs: config.PUNCTUAL_CONTAINER_ADOPT_MS,
  };
  return {
    open,
    run: async (...attempt) => runContainers({ ...settings, ...(await open()) })(...attempt),
  };
}

export async function openEngine(config: Config, clock: Core["clock"]): Promise<ContainerEngine> {
  if (config.PUNCTUAL_CONTAINER_ENGINE === "kubernetes") {
    const { createKubernetesEngine } = await import("../../handlers/containers/kubernetes/engine.ts");
    return createKubernetesEngine({
      clock,
      kubeconfig: config.PUNCTUAL_CONTAINER_KUBECONFIG,
      namespace: config.PUNCTUAL_CONTAINER_NAMESPACE,
      pullSecret: config.PUNCTUAL_CONTAINER_PULL_SECRET,
    });
  }
  const { createDockerEngine } = await import("../../handlers/containers/docker/engine.ts");
  return createDockerEngine({ address: addressOf(config), clock, accounts: accountsOf(config) });
}

function addressOf({ PUNCTUAL_CONTAINER_HOST: host, PUNCTUAL_CONTAINER_TLS_DIR: folder }: Config): DockerAddress {
  if (host.startsWith("unix://")) return { socketPath: host.slice("unix://".length) };
  const url = new URL(host);
  const read = (name: string) => readFileSync(join(folder!, name), "utf8");
  const tls = folder === undefined ? undefined : { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
  const port = url.port === "" ? (tls === undefined ? 2375 : 2376) : Number(url.port);
  return { host: url.hostname, port, tls };
}

function accountsOf({ PUNCTUAL_CONTAINER_REGISTRIES: file }: Config): RegistryAccounts {
  return file === undefined ? new Map() : readRegistryAccounts(file);
}
