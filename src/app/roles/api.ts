import { createApi } from "../../api/app.ts";
import { createJobCatalogue } from "../../api/job-catalogue.ts";
import type { JobRegistry } from "../../handlers/registry.ts";
import { createBoard } from "../../hints/board.ts";
import { createCallLimits } from "../../hints/call-limits.ts";
import type { Service } from "../../kernel/service.ts";
import type { Core } from "../core.ts";
import { effectKindsOf } from "../effects.ts";
import { createHealthProbe } from "../health.ts";
import { containerRulesOf } from "../kinds/container-settings.ts";
import { objectsReady } from "../objects.ts";
import { oidcOf } from "../oidc.ts";
import { outputStoreOf } from "./output-store.ts";

/** Serves the HTTP API, its reference page and Bull Board. `url()` is known once it has started. */
export function apiRole(core: Core, registry: JobRegistry, secret: string): Service & { url(): string } {
  const { config, clock, log, metrics, db, authority } = core;
  const oidc = oidcOf(config);
  const api = createApi({
    authority,
    db,
    clock,
    log,
    metrics,
    health: createHealthProbe(core),
    objects: core.objects,
    jobs: createJobCatalogue(registry.jobs),
    effectKinds: effectKindsOf(config),
    containers: containerRulesOf(config),
    outboundAllow: config.PUNCTUAL_OUTBOUND_ALLOW ?? [],
    version: core.version,
    config: {
      secret,
      closeGraceMs: 5_000,
      ...(oidc === undefined ? {} : { oidc }),
      ...(config.PUNCTUAL_PUBLIC_URL === undefined ? {} : { publicUrl: config.PUNCTUAL_PUBLIC_URL }),
      ...(config.PUNCTUAL_TRUST_PROXY === undefined ? {} : { trustProxy: config.PUNCTUAL_TRUST_PROXY }),
    },
    workers: {
      outputs: outputStoreOf(core.objects, config.PUNCTUAL_OUTPUT_LIMIT_BYTES),
      logs: core.logs,
      // What wakes relays is what workers wait for, too.
      onWork: (callback) => core.wakes.on("relay", callback),
    },
    callLimits: createCallLimits({ redis: core.redis?.connection, clock }),
    board: core.redis === undefined ? undefined : createBoard({ redis: core.redis.connection }),
  });
  let listening: Awaited<ReturnType<typeof api.listen>> | undefined;
  return {
    name: "api",
    async start() {
      await objectsReady(core).start();
      listening ??= await api.listen(config.PUNCTUAL_HOST, config.PUNCTUAL_PORT);
    },
    url: () => listening?.url ?? "",
    async stop() {
      await listening?.close();
    },
  };
}
