import { HOW_TO_OPEN, knownAddressesOf, type OutboundPolicy, type Target } from "../../domain/outbound/policy.ts";
import { type Address, canonicalHost } from "../../kernel/addresses.ts";
import type { ResolveName } from "./look-up.ts";

/**
 * Where tenants' calls may lead. A name is resolved once, every address is looked at, and these very addresses are dialled:
 * a name that changes its mind in between gains nothing.
 */

/** Nothing was dialled; trying again would not help. */
export class ForbiddenAddress extends Error {
  readonly code = "target-blocked";
}

/** @throws ForbiddenAddress */
export function checkTarget(policy: OutboundPolicy, target: Target): void {
  const refusal = policy.refusalOf(target);
  if (refusal !== undefined) throw new ForbiddenAddress(`${target.host}: ${refusal}`);
}

/**
 * The addresses behind a host name or an IP literal, each of which may be dialled.
 * @throws ForbiddenAddress, or the resolver's error.
 */
export async function resolveTarget(
  policy: OutboundPolicy,
  target: Target,
  resolveName: ResolveName,
): Promise<readonly Address[]> {
  checkTarget(policy, target);
  const name = canonicalHost(target.host)!;
  const known = knownAddressesOf(name);
  if (known !== undefined) return known.filter(policy.permits);
  const found = await resolveName(name);
  const refused = found.find((one) => !policy.permits(one));
  if (refused === undefined) return found;
  throw new ForbiddenAddress(`${target.host} is at ${refused.address}, which is not a public address; ${HOW_TO_OPEN}`);
}
