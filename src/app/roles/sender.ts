import { createLinkSigner } from "../../api/signed-link.ts";
import { createEventSender } from "../../dispatch/effects/event-sender.ts";
import { createEffectSender } from "../../dispatch/effects/sender.ts";
import type { Service } from "../../kernel/service.ts";
import type { Core } from "../core.ts";
import { openEffectAdapters, openEventPoster } from "../effects.ts";
import { objectsReady } from "../objects.ts";

/**
 * Sends what accepted results bring about outside. `publicUrl`: where people reach the API, for links; asked when one is
 * made.
 */
export function senderRole(core: Core, secret: string, publicUrl: () => string): Service[] {
  const { authority, config, objects } = core;
  const links = createLinkSigner(secret);
  const senders = [
    ...openEffectAdapters(core).map((adapter) =>
      createEffectSender({
        authority,
        adapter,
        objects,
        name: core.processName,
        linkTo(run, sha256, expires) {
          const signature = links.sign({ run, sha256, expires });
          return `${publicUrl().replace(/\/+$/, "")}/v1/objects/${run}?expires=${expires}&signature=${signature}`;
        },
        graceMs: config.PUNCTUAL_GRACE_MS,
      }),
    ),
    createEventSender({ authority, poster: openEventPoster(core), graceMs: config.PUNCTUAL_GRACE_MS }),
  ];
  for (const sender of senders) core.wakes.on("effects", sender.wake);
  return [objectsReady(core), ...senders];
}
