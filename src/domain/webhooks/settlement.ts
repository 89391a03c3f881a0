import type { Instant } from "../../kernel/clock.ts";
import { decideRetry } from "../retry.ts";

/** What became of one attempt to deliver, as its sender saw it. Nobody is asked whether it may be sent twice: it may. */
export type DeliveryReport =
  | { kind: "delivered"; status: number }
  /** No 2xx, or no answer. `retryable` false: it would be the same again. */
  | { kind: "failed"; status: number | null; message: string; retryable: boolean; retryAfterMs?: number | undefined }
  /** 410: nobody listens there any more. */
  | { kind: "gone"; message: string }
  /** It could not be sent from here: no fault of the endpoint. */
  | { kind: "withheld"; message: string }
  /** Nobody tried. */
  | { kind: "not-sent"; message: string };

const DAY_MS = 86_400_000;

/** From seconds to two hours apart, for a day. */
const DELIVERY_RETRY = { maxAttempts: 60, maxElapsedMs: DAY_MS, baseMs: 5_000, capMs: 2 * 3_600_000 } as const;

/** An endpoint is given up after so many failures in a row, the first of them so long ago. */
const DISABLE_AFTER_FAILURES = 20;
const DISABLE_AFTER_MS = DAY_MS;

export type DeliverySettlement =
  | { state: "delivered" }
  | { state: "pending"; nextAttemptAt: Instant }
  | { state: "failed" };

/** `attempts` counts the one in question, of this budget; a test is tried once. */
export function decideDelivery(
  report: DeliveryReport,
  spent: { attempts: number; budgetFrom: Instant; isTest: boolean },
  nowAt: Instant,
  chance: number,
): DeliverySettlement {
  if (report.kind === "delivered") return { state: "delivered" };
  if (report.kind === "not-sent") return { state: "pending", nextAttemptAt: nowAt };
  if (report.kind === "gone" || spent.isTest) return { state: "failed" };
  const failure = { ...report, transient: report.kind === "withheld" || report.retryable, code: "" };
  const decision = decideRetry(failure, DELIVERY_RETRY, spent, nowAt, chance);
  return decision.kind === "retry" ? { state: "pending", nextAttemptAt: decision.notBefore } : { state: "failed" };
}

/** An endpoint as far as its failures go. */
export type Health = { failures: number; failingSince: Instant | null };

export type HealthChange =
  | { kind: "none" }
  | { kind: "counted"; health: Health }
  | { kind: "disabled"; health: Health; reason: string };

/** What a report says of its endpoint. What was never tried says nothing. */
export function decideHealth(before: Health, report: DeliveryReport, nowAt: Instant): HealthChange {
  if (report.kind === "not-sent" || report.kind === "withheld") return { kind: "none" };
  if (report.kind === "delivered") return { kind: "counted", health: { failures: 0, failingSince: null } };
  const health = { failures: before.failures + 1, failingSince: before.failingSince ?? nowAt };
  if (report.kind === "gone")
    return { kind: "disabled", health, reason: "it answered 410: nobody listens there any more" };
  if (health.failures < DISABLE_AFTER_FAILURES || nowAt - health.failingSince < DISABLE_AFTER_MS) {
    return { kind: "counted", health };
  }
  const since = new Date(Math.floor(health.failingSince)).toISOString();
  return { kind: "disabled", health, reason: `all ${health.failures} attempts since ${since} have failed` };
}
