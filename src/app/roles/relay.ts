import { createPublisher } from "../../hints/publisher.ts";
import { createLoop } from "../../kernel/loop.ts";
import type { Service } from "../../kernel/service.ts";
import { createPublishMarked } from "../../loops/publish-marked.ts";
import { createRelay } from "../../loops/relay.ts";
import { createWindows } from "../../loops/windows.ts";
import type { Core } from "../core.ts";

/** Feeds Redis from the outbox. Without Redis there is nothing to relay. */
export function relayRole(core: Core): Service[] {
  const { authority, redis, clock, log } = core;
  if (redis === undefined) return [];
  const publisher = createPublisher({ redis: redis.connection, clock, log });
  const available = { available: core.redisAvailable, setRateLimits: publisher.setRateLimits };
  const relay = createRelay({
    authority,
    redis: available,
    windows: createWindows(authority, available),
    publishMarked: createPublishMarked(authority, publisher),
  });
  const loop = createLoop(relay, core);
  core.wakes.on("relay", loop.wake);
  return [loop];
}
