import type { Authority } from "../../authority/authority.ts";
import { findDueSends } from "../../authority/effects/due.ts";
import { type SendGrant, sendEffects } from "../../authority/effects/send.ts";
import { settleEffects } from "../../authority/effects/settle.ts";
import { hasExpiredLink } from "../../domain/effects/facts.ts";
import { openHeaders, sealedHeaders } from "../../domain/effects/headers.ts";
import type { SendReport } from "../../domain/effects/settlement.ts";
import { type KnownSecrets, knowSecrets, NO_SECRETS } from "../../domain/secrets/known.ts";
import type { EffectAdapter } from "../../handlers/effects/port.ts";
import { messageOf, operatorError } from "../../kernel/errors.ts";
import type { ObjectStore } from "../../objects/port.ts";
import { createSendingLoop, type Sender } from "./sending-loop.ts";

export type SenderOptions = {
  authority: Authority;
  adapter: EffectAdapter;
  objects: Pick<ObjectStore, "open">;
  /** How this process is called in histories. */
  name: string;
  /** A link to a run's result that works until `expires` (epoch s). */
  linkTo(run: string, sha256: string, expires: number): string;
  /** How long sends may go on after stop was asked for. */
  graceMs: number;
};

type Opened = { headers: Record<string, string>; secrets: KnownSecrets };

function scrubbed(report: SendReport, secrets: KnownSecrets): SendReport {
  if (secrets.count === 0) return report;
  const message = report.message === null ? null : secrets.scrub(report.message);
  if (report.kind !== "sent") return { ...report, message: message! };
  return { ...report, message, externalId: report.externalId === null ? null : secrets.scrub(report.externalId) };
}

/** Sends the effects of one kind. */
export function createEffectSender(options: SenderOptions): Sender {
  const { authority, adapter } = options;
  const { clock, log, metrics } = authority;
  const { kind, concurrency } = adapter;

  async function send(grant: SendGrant, signal: AbortSignal): Promise<SendReport> {
    const startedMs = clock.monotonic();
    const { effect, facts } = grant.request;
    const { result } = facts;
    // No sender came for days. Whoever has it sent again gets it a new one.
    if (hasExpiredLink(facts, clock.now())) {
      return { kind: "refused", transient: false, message: "the link to its result has expired: it was not sent" };
    }
    let opened: Opened;
    try {
      opened = await openHeadersOf(grant);
    } catch (error) {
      // Nothing left; who brings the key back lets it go on.
      return { kind: "refused", transient: true, message: messageOf(error) };
    }
    const { headers, secrets } = opened;
    try {
      const report = await adapter.send(
        {
          actionId: grant.actionId,
          tenantId: grant.tenantId,
          effect,
          facts,
          content: grant.request.content,
          headers,
          secrets,
          resultUrl: result && options.linkTo(facts.run.id, result.sha256, result.linkExpires),
          async openResult() {
            if (grant.result === null) throw operatorError("object-missing", "the run's result is not on record");
            return options.objects.open(grant.result);
          },
        },
        signal,
      );
      return scrubbed(report, secrets);
    } catch (error) {
      const reason = secrets.scrub(messageOf(error));
      log.error({ effect: grant.actionId, reason }, "an effect adapter threw");
      return { kind: "unknown", message: reason };
    } finally {
      metrics.effectSeconds.observe({ kind }, (clock.monotonic() - startedMs) / 1000);
    }
  }

  /** Its headers, and the secrets among them; nothing that the other side says may hold one. */
  async function openHeadersOf({ tenantId, request: { effect } }: SendGrant): Promise<Opened> {
    if (effect.kind !== "webhook") return { headers: {}, secrets: NO_SECRETS };
    const sealed = sealedHeaders(effect.headers);
    const opened = sealed.length === 0 ? new Map() : await authority.vault.open(tenantId, sealed);
    const secrets = knowSecrets([...opened.values()].map((value) => ({ path: [], value })));
    return { headers: openHeaders(effect.headers, opened), secrets };
  }

  async function settle({ effectId, fence, actionId, attempt }: SendGrant, report: SendReport): Promise<void> {
    const [outcome] = await settleEffects(authority, [{ effectId, fence, report }]);
    const said = { effect: actionId, report: report.kind };
    if (outcome?.kind === "stale-fence") {
      log.warn(said, "a report came too late: the effect was decided without it");
    } else if (report.kind !== "sent") {
      log.warn({ ...said, attempt, reason: report.message }, "an effect was not sent");
    }
  }

  return createSendingLoop(
    authority,
    {
      name: `effects-${kind}`,
      concurrency,
      findDue: ({ sending, ...limits }) =>
        findDueSends(authority, kind, { ...limits, sending: sending.map(({ tenantId }) => tenantId) }),
      claim: ({ ids, ...claim }) => sendEffects(authority, { ...claim, effectIds: ids, sender: options.name }),
      send,
      notSent: (message): SendReport => ({ kind: "not-sent", message }),
      settle,
      nameOf: (grant) => grant.actionId,
      close: () => adapter.close(),
    },
    options.graceMs,
  );
}
