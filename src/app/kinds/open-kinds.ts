import { createSigningKeys } from "../../authority/secrets/signing-keys.ts";
import { runHttp } from "../../handlers/http/run-http.ts";
import { type JobKinds, runFunctions } from "../../handlers/kinds.ts";
import { createQueueJobs } from "../../handlers/queue/queue-job.ts";
import type { JobRegistry } from "../../handlers/registry.ts";
import type { Service } from "../../kernel/service.ts";
import type { Core } from "../core.ts";
import type { BlockedWatch } from "../main-thread/watch.ts";
import { type Containers, openContainers } from "./containers.ts";
import { openPlaces } from "./places.ts";

/** The kinds of jobs that workers of this installation run, and what lives and ends with the worker for them. */
export type OpenKinds = {
  kinds: JobKinds;
  /** Undefined: no containers are run. */
  containers: Containers | undefined;
  blocked: BlockedWatch["last"];
  /** To be stopped after the worker. */
  services: Service[];
};

export function openKinds(core: Core, registry: JobRegistry, scrub: (text: string) => string): OpenKinds {
  const { outbound, clock } = core;
  const { places, blocked, services } = openPlaces(core, scrub);
  const queues = createQueueJobs({ outbound, clock });
  const containers = openContainers(core);
  return {
    kinds: {
      function: runFunctions(registry, places),
      http: runHttp({
        outbound,
        clock,
        keys: createSigningKeys(core.authority),
        userAgent: `Punctual/${core.version}`,
      }),
      queue: queues.run,
      ...(containers && { container: containers.run }),
    },
    containers,
    blocked,
    services: [...services, queues.service],
  };
}
