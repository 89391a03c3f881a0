import type { Socket } from "node:net";
import { LRUCache } from "lru-cache";
import type { Dispatcher } from "undici";
import { type OutboundPolicy, outboundPolicy, type Target } from "../../domain/outbound/policy.ts";
import type { OutboundRules } from "../../domain/outbound/rules.ts";
import { canonicalHost } from "../../kernel/addresses.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { createAgent } from "./agent.ts";
import { dialAddresses } from "./dial.ts";
import { checkTarget, resolveTarget } from "./guard.ts";
import { createLookUp, type ResolveName } from "./look-up.ts";
import type { Outbound } from "./outbound.ts";
import { type EgressProxy, tunnel } from "./proxy.ts";

export type OutboundOptions = {
  clock: Clock;
  /** What a tenant may reach, read anew now and then. */
  rulesOf(tenantId: Uuid): Promise<OutboundRules | null>;
  /** Addresses and ranges that every tenant may reach although they are not public. */
  allow: readonly string[];
  proxy?: EgressProxy | undefined;
  connectTimeoutMs: number;
  resolveName?: ResolveName;
};

/** One way out for each tenant: connections that are kept are never another tenant's, nor of rules that were changed. */
type Way = { rules: string; policy: OutboundPolicy; agent: Dispatcher };

/** Who has not called for long is made ready anew. */
const MOST_WAYS = 2_000;

export function createOutbound(options: OutboundOptions): Outbound & { close(): Promise<void> } {
  const { clock, rulesOf, allow, proxy, connectTimeoutMs, resolveName = createLookUp() } = options;
  // What falls out has connections for a second at most, and whoever holds it may still use it.
  const ways = new LRUCache<Uuid, Way>({ max: MOST_WAYS });

  function open(policy: OutboundPolicy, target: Target, signal?: AbortSignal): Promise<Socket> {
    return openWay({ proxy, resolveName }, policy, target, { clock, timeoutMs: connectTimeoutMs, signal });
  }

  async function wayOf(tenantId: Uuid): Promise<Way> {
    const found = await rulesOf(tenantId);
    const rules = JSON.stringify(found);
    const known = ways.get(tenantId);
    if (known?.rules === rules) return known;
    const policy = outboundPolicy(found, allow);
    const made = { rules, policy, agent: createAgent((target) => open(policy, target), { clock, connectTimeoutMs }) };
    ways.set(tenantId, made);
    return made;
  }

  return {
    agentFor: async (tenantId) => (await wayOf(tenantId)).agent,
    dial: async (tenantId, target, signal) => open((await wayOf(tenantId)).policy, target, signal),
    async close() {
      // Nobody waits for an answer any more.
      await Promise.all([...ways.values()].map(({ agent }) => agent.destroy()));
      ways.clear();
    },
  };
}

async function openWay(
  { proxy, resolveName }: { proxy: EgressProxy | undefined; resolveName: ResolveName },
  policy: OutboundPolicy,
  target: Target,
  patience: Parameters<typeof dialAddresses>[2],
): Promise<Socket> {
  const { port } = target;
  if (proxy?.resolve === "proxy") {
    checkTarget(policy, target);
    // Of all ways to write it the one that was looked at.
    return tunnel(proxy, canonicalHost(target.host)!, port, patience);
  }
  const addresses = await resolveTarget(policy, target, resolveName);
  patience.signal?.throwIfAborted();
  if (proxy === undefined) return dialAddresses(addresses, port, patience);
  let failure: unknown = Object.assign(new Error("the name has no address"), { syscall: "getaddrinfo" });
  for (const { address } of addresses) {
    try {
      return await tunnel(proxy, address, port, patience);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
