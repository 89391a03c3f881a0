import { ObjectReference } from "./object-rules.ts";
import { type Effect, type Run, SENDINGS, type SendGrant, type SendReport, type StoredObject } from "./terms.ts";

/** What must be true of effects, in so many words: see reference.ts. */

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;

export class EffectReference extends ObjectReference {
  readonly sendGrants: SendGrant[] = [];

  /** The accepted result, and nothing else, makes intents: one for each effect that the run's revision declares. */
  protected intend(run: Run, object: StoredObject | undefined): void {
    for (const name of run.policy.effects) {
      if (object !== undefined) this.linkTo(object, name);
      this.effects.push({
        id: undefined,
        run,
        name,
        object,
        state: "pending",
        resolution: undefined,
        dueAt: this.now,
        spent: 0,
        budgetFrom: this.now,
        firstSentAt: undefined,
        inDoubt: false,
        doubtedBefore: false,
        leaseUntil: 0,
        sends: [],
      });
    }
  }

  /** Answers those that may be tried now. What the other side may have forgotten is not sent a second time. */
  send(effects: readonly Effect[], leaseMs: number): Effect[] {
    const due = [...new Set(effects)].filter((one) => one.state === "pending" && one.dueAt <= this.now);
    const sent: Effect[] = [];
    for (const effect of due) {
      const { onUncertain } = SENDINGS[effect.name];
      if (effect.inDoubt && onUncertain !== "resend" && this.now >= knownUntil(effect)) {
        giveUp(effect);
        continue;
      }
      effect.state = "sending";
      effect.spent += 1;
      effect.firstSentAt ??= this.now;
      effect.leaseUntil = this.now + leaseMs * 1000;
      effect.sends.push({ fence: undefined, outcome: undefined });
      sent.push(effect);
    }
    return sent;
  }

  settle({ effect, send }: SendGrant, report: SendReport): string {
    if (effect.sends.at(-1) !== send) return "stale-fence";
    const isBeingMade = effect.state === "sending" && send.outcome === undefined;
    // Whoever was given up may still bring the good news, as long as nothing else was tried or decided.
    const isGoodNews = send.outcome === "lapsed" && report.kind === "sent";
    const isUndecided = effect.state === "pending" || effect.state === "uncertain";
    if (isBeingMade || (isGoodNews && isUndecided)) {
      send.outcome = report.kind;
      this.#settled(effect, report);
      return `settled ${effect.state}`;
    }
    return send.outcome === report.kind ? `already-settled ${effect.state}` : "stale-fence";
  }

  /** Senders that were not heard of: nobody knows. */
  lapse(effects: readonly Effect[]): number {
    const over = [...new Set(effects)].filter((one) => one.state === "sending" && one.leaseUntil < this.now);
    for (const effect of over) {
      effect.sends.at(-1)!.outcome = "lapsed";
      this.#settled(effect, { kind: "unknown", transient: true, retryAfterMs: undefined });
    }
    return over.length;
  }

  resolve(effect: Effect, decision: "sent" | "resend" | "drop"): string {
    const { state, object } = effect;
    const wanted = decision === "resend" ? "pending" : decision === "sent" ? "resolved sent" : "resolved dropped";
    if ([state, effect.resolution ?? []].flat().join(" ") === wanted) return "repeated";
    if (state === "sending") return "sending sending";
    const may = { uncertain: ["sent", "resend", "drop"], failed: ["resend", "drop"], pending: ["drop"] };
    if (!(state in may) || !may[state as keyof typeof may].includes(decision)) return `settled ${state}`;
    if (decision === "resend") {
      if (object !== undefined && object.state !== "referenced") return "result-expired";
      Object.assign(effect, { state: "pending", dueAt: this.now, spent: 0, budgetFrom: this.now });
      const isKnown = this.now < knownUntil(effect);
      if (object !== undefined && !isKnown) this.linkTo(object, effect.name);
      const firstSentAt = isKnown ? effect.firstSentAt : undefined;
      const doubtedBefore = effect.doubtedBefore || effect.inDoubt;
      Object.assign(effect, { inDoubt: false, doubtedBefore, firstSentAt });
    } else Object.assign(effect, { state: "resolved", resolution: decision === "sent" ? "sent" : "dropped" });
    return "resolved";
  }

  #settled(effect: Effect, report: SendReport): void {
    const retryAt = this.#retryAt(effect, report);
    const { onUncertain } = SENDINGS[effect.name];
    switch (report.kind) {
      case "sent":
        effect.state = "sent";
        return;
      case "not-sent":
        effect.spent -= 1;
        Object.assign(effect, { state: "pending", dueAt: this.now });
        return;
      case "refused":
        if (retryAt !== undefined) Object.assign(effect, { state: "pending", dueAt: retryAt });
        else if (effect.inDoubt || effect.doubtedBefore) giveUp(effect);
        else effect.state = "failed";
        return;
      case "unknown":
        effect.inDoubt = true;
        if (retryAt !== undefined && (retryAt < knownUntil(effect) || onUncertain === "resend"))
          Object.assign(effect, { state: "pending", dueAt: retryAt });
        else giveUp(effect);
    }
  }

  /** Only a refusal says whether patience helps; whatever else happened may be over soon. */
  #retryAt(effect: Effect, report: SendReport): number | undefined {
    const { maxAttempts, maxElapsedMinutes } = SENDINGS[effect.name];
    const transient = report.kind !== "refused" || report.transient;
    const { retryAfterMs } = report;
    if (!transient || effect.spent >= maxAttempts) return undefined;
    const backoff = Math.floor(Math.min(3_600_000, 1000 * 2 ** (effect.spent - 1)) / 2);
    const at = this.now + Math.max(backoff, retryAfterMs ?? 0) * 1000;
    return at - effect.budgetFrom > maxElapsedMinutes * MINUTE ? undefined : at;
  }
}

/** Nobody knows, and it may not be tried again: a person decides, or it was said beforehand to let it be. */
function giveUp(effect: Effect): void {
  if (SENDINGS[effect.name].onUncertain === "drop") Object.assign(effect, { state: "resolved", resolution: "dropped" });
  else effect.state = "uncertain";
}

/** Until when the other side takes a second message under the same key for the first. */
function knownUntil({ firstSentAt, name }: Effect): number {
  return firstSentAt! + SENDINGS[name].windowMinutes * MINUTE;
}
