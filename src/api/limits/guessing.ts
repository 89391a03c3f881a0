import { createHash } from "node:crypto";
import type { Request } from "express";
import { LRUCache } from "lru-cache";
import type { CallLimits } from "../../hints/call-limits.ts";
import type { Clock } from "../../kernel/clock.ts";
import { credentialFromAuthorization } from "../auth.ts";
import { addressOf } from "../calls/address.ts";
import { Problem } from "../problems/problem.ts";
import { retryAfter } from "../problems/quota.ts";
import type { Entrance } from "../sessions/entrance.ts";

/** Credentials that are no good, from one address in a minute. Whoever mistypes a key is far below. */
const FAILURES = { points: 60, seconds: 60 } as const;
const MOST_REMEMBERED = 10_000;
const GOOD_FOR_MS = 3_600_000;

export type GuessGuard = {
  /**
   * Lets `enter` look at the credential that came from this address. Where it has sent too many bad ones, only credentials
   * that were good here within the hour are looked at, so that many callers behind one address do not pay for one of them.
   */
  watch<T>(address: string | null, credential: string | undefined, enter: () => Promise<T>): Promise<T>;
};

export function createGuessGuard(deps: { calls: CallLimits; clock: Clock }): GuessGuard {
  const { calls, clock } = deps;
  const blockedUntil = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  const good = new LRUCache<string, number>({ max: MOST_REMEMBERED });

  return {
    async watch(from, credential, enter) {
      const address = networkOf(from);
      // Who sends none guesses none.
      if (address === undefined || credential === undefined) return enter();
      const nowAt = clock.monotonic();
      const name = createHash("sha256").update(credential).digest("base64");
      const until = blockedUntil.get(address) ?? 0;
      const isGood = (good.get(name) ?? Number.NEGATIVE_INFINITY) > nowAt;
      if (until > nowAt && !isGood) throw tooMany(until - nowAt);
      try {
        const entered = await enter();
        good.set(name, nowAt + GOOD_FOR_MS);
        return entered;
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== "unauthenticated") throw error;
        good.delete(name);
        const taken = await calls.take(`failures:${address}`, FAILURES);
        if (!taken.isAllowed) blockedUntil.set(address, clock.monotonic() + taken.resetMs);
        throw error;
      }
    },
  };
}

/** One IPv4 address, or the network of an IPv6 one: whoever has one address there has them all. No ':' in it. */
function networkOf(address: string | null): string | undefined {
  if (address === null || !address.includes(":")) return address ?? undefined;
  const [head = "", tail] = address.split("::");
  const left = head.split(":").filter((part) => part !== "");
  const right = (tail ?? "").split(":").filter((part) => part !== "");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array<string>(zeros).fill("0"), ...right].slice(0, 4).join("-");
}

function tooMany(ms: number): Problem {
  return new Problem("too-many-failures", "Too many calls from this address had no valid credential", {
    headers: retryAfter(ms),
  });
}

/** The same entrance, behind the guard. */
export function guardEntrance(entrance: Entrance, guard: GuessGuard): Entrance {
  // Cookies are not counted: what we have signed cannot be guessed, and a page that is left open with a session that has ended is no attack.
  const watch = <T>(request: Request, enter: () => Promise<T>) =>
    guard.watch(addressOf(request), credentialFromAuthorization(request.headers.authorization), enter);
  return {
    ...entrance,
    enter: (request) => watch(request, () => entrance.enter(request)),
    enterOrCallBack: (request) => watch(request, () => entrance.enterOrCallBack(request)),
    enterWithoutToken: (request) => watch(request, () => entrance.enterWithoutToken(request)),
    begin: (arrival, credential) => guard.watch(arrival.address, credential, () => entrance.begin(arrival, credential)),
  };
}
