import type { Authority } from "../../authority/authority.ts";
import { findDueSends } from "../../authority/effects/due.ts";
import { type SendGrant, sendEffects } from "../../authority/effects/send.ts";
import { settleEffects } from "../../authority/effects/settle.ts";
import { hasExpiredLink } from "../../domain/effects/facts.ts";
import type { SendReport } from "../../domain/effects/settlement.ts";
import type { EffectAdapter } from "../../handlers/effects/port.ts";
import { messageOf, operatorError } from "../../kernel/errors.ts";
import { mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { createLoop, type LoopService, type Pass } from "../../kernel/loop.ts";
import type { ObjectStore } from "../../objects/port.ts";
import { insist } from "../insist.ts";

/** Longest attempt of any adapter. */
const SEND_LIMIT_MS = 120_000;
/** Nobody else sends it meanwhile: the longest attempt, and time to say what came of it. */
export const SEND_LEASE_MS = 180_000;
/** Latest a send may begin after its claim was asked for, so that it ends within the lease. */
const BEGIN_WITHIN_MS = SEND_LEASE_MS - SEND_LIMIT_MS - 10_000;
/** How long the database may be away before a report is left to the lease. */
const REPORT_WITHIN_MS = 600_000;
const LOOK_EVERY_MS = 2_000;

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

export type EffectSender = Pass &
  Pick<LoopService, "start" | "stop" | "wake"> & {
    /** Resolves when nothing is being sent. */
    drain(): Promise<void>;
  };

/**
 * Sends the effects of one kind: finds what is due, claims as much as it has room for, sends outside any transaction,
 * and reports. Any number of processes may; a claim decides.
 * Stops in this order: no more claims; sends end within the grace; the rest is told to stop, and says what it knows.
 */
export function createEffectSender(options: SenderOptions): EffectSender {
  const { authority, adapter } = options;
  const { clock, log, metrics } = authority;
  const { kind, concurrency } = adapter;
  /** What is being sent, and whose it is. */
  const sending = new Map<Promise<void>, Uuid>();
  const stopping = new AbortController();
  const ending = new AbortController();

  const page: Pass = {
    name: `effects-${kind}`,
    everyMs: LOOK_EVERY_MS,
    idleMs: LOOK_EVERY_MS,
    async pass() {
      const room = concurrency - sending.size;
      if (room <= 0) return { did: 0, more: false };
      // Receivers of one tenant, however slow, leave room for the others.
      const limits = { perTenant: Math.ceil(concurrency / 4), all: room, sending: [...sending.values()] };
      const { ids, nextInMs } = await findDueSends(authority, kind, limits);
      const grants = ids.length === 0 ? [] : await claim(ids);
      const nextAt = nextInMs === null || nextInMs === 0 ? undefined : clock.now() + nextInMs;
      return { did: grants.length, more: grants.length > 0 && sending.size < concurrency, nextAt };
    },
  };
  const loop = createLoop(page, { clock, log, metrics });

  async function claim(effectIds: string[]): Promise<SendGrant[]> {
    const claimId = mintId(clock.now(), randomBucket());
    const askedMs = clock.monotonic();
    const patience = { ending: ending.signal, untilMs: askedMs + BEGIN_WITHIN_MS };
    const grants = await insist(authority, patience, (tries) =>
      sendEffects(authority, {
        claimId,
        sender: options.name,
        effectIds,
        leaseMs: SEND_LEASE_MS,
        repeated: tries > 1,
      }),
    );
    for (const grant of grants) {
      const one = attempt(grant, askedMs).catch((error: unknown) =>
        log.error(
          { effect: grant.actionId, reason: messageOf(error) },
          "an attempt to send was lost; its lease ends it",
        ),
      );
      sending.set(one, grant.tenantId);
      void one.finally(() => {
        sending.delete(one);
        loop.wake();
      });
    }
    return grants;
  }

  async function attempt(grant: SendGrant, askedMs: number): Promise<void> {
    const report = await tryOnce(grant, askedMs);
    await authority.faults.reach("effect:sent");
    const { effectId, fence } = grant;
    const patience = { ending: ending.signal, untilMs: clock.monotonic() + REPORT_WITHIN_MS };
    const [outcome] = await insist(authority, patience, () => settleEffects(authority, [{ effectId, fence, report }]));
    if (outcome?.kind === "stale-fence") {
      log.warn(
        { effect: grant.actionId, report: report.kind },
        "a report came too late: the effect was decided without it",
      );
    } else if (report.kind !== "sent") {
      const { actionId, attempt: n } = grant;
      log.warn({ effect: actionId, attempt: n, report: report.kind, reason: report.message }, "an effect was not sent");
    }
  }

  async function tryOnce(grant: SendGrant, askedMs: number): Promise<SendReport> {
    const startedMs = clock.monotonic();
    // A process that was frozen in between must not begin what somebody else may be doing by now.
    if (startedMs - askedMs > BEGIN_WITHIN_MS || stopping.signal.aborted) {
      return { kind: "not-sent", message: "the sender came too late to try" };
    }
    const { effect, facts } = grant.request;
    const { result } = facts;
    // No sender came for days. Whoever has it sent again gets it a new one.
    if (hasExpiredLink(facts, clock.now())) {
      return { kind: "refused", transient: false, message: "the link to its result has expired: it was not sent" };
    }
    const over = new AbortController();
    const limit = clock.after(SEND_LIMIT_MS, () => over.abort());
    try {
      return await adapter.send(
        {
          actionId: grant.actionId,
          effect,
          facts,
          resultUrl: result && options.linkTo(facts.run.id, result.sha256, result.linkExpires),
          async openResult() {
            if (grant.result === null) throw operatorError("object-missing", "the run's result is not on record");
            return options.objects.open(grant.result);
          },
        },
        AbortSignal.any([over.signal, stopping.signal]),
      );
    } catch (error) {
      log.error({ effect: grant.actionId, err: error, reason: messageOf(error) }, "an effect adapter threw");
      return { kind: "unknown", message: messageOf(error) };
    } finally {
      limit.cancel();
      metrics.effectSeconds.observe({ kind }, (clock.monotonic() - startedMs) / 1000);
    }
  }

  async function drain(): Promise<void> {
    while (sending.size > 0) await Promise.all(sending.keys());
  }

  let stopped: Promise<void> | undefined;
  return {
    ...page,
    start: () => loop.start(),
    wake: () => loop.wake(),
    drain,
    stop() {
      stopped ??= (async () => {
        await loop.stop();
        const grace = clock.after(options.graceMs, () => stopping.abort());
        const patience = clock.after(options.graceMs + 5_000, () => ending.abort());
        await drain();
        grace.cancel();
        patience.cancel();
        await adapter.close();
      })();
      return stopped;
    },
  };
}
