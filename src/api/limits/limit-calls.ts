import type { Response } from "express";
import { LRUCache } from "lru-cache";
import { DEFAULT_QUOTAS } from "../../domain/quotas/tenant.ts";
import type { CallLimits, Taken } from "../../hints/call-limits.ts";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findTenantQuotas } from "../../store/reads/tenants/quotas.ts";
import type { ApiContext, Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import { retryAfter } from "../problems/quota.ts";
import type { Route } from "../route.ts";
import { createGuessGuard, type GuessGuard } from "./guessing.ts";

/** What a tenant may call in a second, and beyond that in a minute; null: as often as it likes. */
type Rate = { perSecond: number; burst: number } | null;

/** How long a rate is believed that was read: a new one may be let wait for so long, elsewhere than where it was set. */
const TRUST_RATE_MS = 5_000;
const MOST_TENANTS = 10_000;
const BURST_SECONDS = 60;
/** Workers are many processes of one tenant. What keeps runs going is counted apart from their other calls. */
const WORKER_FACTOR = 10;

/** What one process keeps of it. */
export type Limits = { calls: CallLimits; rates: TenantRates; guesses: GuessGuard };

export function createLimits(calls: CallLimits, clock: Clock): Limits {
  return { calls, rates: createTenantRates(clock), guesses: createGuessGuard({ calls, clock }) };
}

export type TenantRates = {
  of(context: Pick<ApiContext, "db" | "log">, tenantId: Uuid): Promise<Rate>;
  /** The tenant's next call is measured by what is in force. */
  forget(tenantId: Uuid): void;
};

function createTenantRates(clock: Clock): TenantRates {
  // Promises, so that a burst of calls is no burst of reads.
  const known = new LRUCache<Uuid, { rate: Promise<Rate>; readAt: number }>({ max: MOST_TENANTS });

  async function read(
    { db, log }: Pick<ApiContext, "db" | "log">,
    tenantId: Uuid,
    before?: Promise<Rate>,
  ): Promise<Rate> {
    try {
      return rateOf((await findTenantQuotas(db, tenantId)) ?? DEFAULT_QUOTAS);
    } catch (error) {
      // What the call asks for may be answered without the database, and if not it says so itself.
      log.debug({ error: messageOf(error) }, "the rate of a tenant could not be read");
      return before ?? rateOf(DEFAULT_QUOTAS);
    }
  }

  return {
    of(context, tenantId) {
      const before = known.get(tenantId);
      const readAt = clock.monotonic();
      if (before !== undefined && readAt - before.readAt < TRUST_RATE_MS) return before.rate;
      const rate = read(context, tenantId, before?.rate);
      known.set(tenantId, { rate, readAt });
      return rate;
    },
    forget: (tenantId) => known.delete(tenantId),
  };
}

function rateOf({ apiRatePerSecond, apiBurst }: typeof DEFAULT_QUOTAS): Rate {
  return apiRatePerSecond === null ? null : { perSecond: apiRatePerSecond, burst: apiBurst };
}

/** Counts one call of a tenant, and says in headers what is left; throws `quota-exceeded` for one too many. */
export async function limitCalls(
  context: ApiContext,
  caller: Caller,
  response: Response,
  route: Pick<Route, "keepsRunsGoing"> = {},
): Promise<void> {
  const { limits } = context;
  if (limits === undefined) return;
  const { role, tenantId } = caller;
  const rate = await limits.rates.of(context, tenantId);
  if (rate === null) return;
  const factor = role === "worker" ? WORKER_FACTOR : 1;
  const counted = role !== "worker" ? "tenant" : route.keepsRunsGoing ? "runs" : "workers";
  const key = `${counted}:${tenantId}`;
  const perSecond = rate.perSecond * factor;
  const burst = rate.burst * factor;
  const policies = [`"rate";q=${perSecond};w=1`, ...(burst > 0 ? [`"burst";q=${burst};w=${BURST_SECONDS}`] : [])];
  response.set("RateLimit-Policy", policies.join(", "));

  const first = await limits.calls.take(`${key}:rate`, { points: perSecond, seconds: 1 });
  if (first.isAllowed) return say(response, "rate", first);
  const beyond =
    burst > 0 ? await limits.calls.take(`${key}:burst`, { points: burst, seconds: BURST_SECONDS }) : undefined;
  if (beyond?.isAllowed) return say(response, "burst", beyond);
  say(response, "rate", first);
  context.metrics.quotaRefusals.inc({ quota: "apiRatePerSecond" });
  throw new Problem("quota-exceeded", `The tenant calls more often than ${perSecond} times a second`, {
    more: { quota: "apiRatePerSecond", limit: perSecond, used: perSecond },
    headers: retryAfter(first.resetMs),
  });
}

/** As the IETF draft on RateLimit header fields has it: what is left, and in how many seconds that is renewed. */
function say(response: Response, policy: "rate" | "burst", { remaining, resetMs }: Taken): void {
  response.set("RateLimit", `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`);
}
