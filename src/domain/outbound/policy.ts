import {
  type Address,
  type AddressList,
  canonicalHost,
  embeddedIn,
  isPublic,
  listOf,
  literalOf,
} from "../../kernel/addresses.ts";
import type { OutboundRules } from "./rules.ts";

export type Target = { host: string; port: number };

/** Rules made ready: what one tenant's calls may reach. */
export type OutboundPolicy = {
  /** Why a target may not be reached, as far as that is known before its name is looked up. */
  refusalOf(target: Target): string | undefined;
  permits(address: Address): boolean;
};

/** What can be done for a target that is refused because it is not public. */
export const HOW_TO_OPEN = "the operator can open others: PUNCTUAL_OUTBOUND_ALLOW, or tenants edit --outbound-allow";

/** `allow`: addresses and ranges that every tenant of the installation may reach although they are not public. */
export function outboundPolicy(rules: OutboundRules | null, allow: readonly string[]): OutboundPolicy {
  const exempt = listOf([...allow, ...(rules?.allow ?? [])]);
  const permits = (address: Address) => isPermitted(address, exempt);
  return {
    permits,
    refusalOf({ host, port }) {
      const name = canonicalHost(host);
      if (name === undefined) return "is no host";
      if (rules?.ports != null && !rules.ports.includes(port)) {
        return `port ${port} is none of those this tenant may reach: ${rules.ports.join(", ") || "none"}`;
      }
      if (rules?.hosts != null && !rules.hosts.some((pattern) => matches(name, pattern))) {
        return "is none of the hosts this tenant may reach";
      }
      const addresses = knownAddressesOf(name);
      if (addresses === undefined || addresses.some(permits)) return undefined;
      return "is not a public address";
    },
  };
}

/** An address that leads to another is only as good as that. */
function isPermitted(address: Address, exempt: AddressList): boolean {
  if (!isPublic(address) && !exempt.has(address)) return false;
  const embedded = embeddedIn(address);
  return embedded === undefined || isPermitted(embedded, exempt);
}

const LOOPBACK: readonly Address[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Addresses of a host (as URLs write it) that nobody needs to be asked for: an address, and `localhost` however it resolves. */
export function knownAddressesOf(name: string): readonly Address[] | undefined {
  const literal = literalOf(name);
  if (literal !== undefined) return [literal];
  return name === "localhost" || name.endsWith(".localhost") ? LOOPBACK : undefined;
}

function matches(name: string, pattern: string): boolean {
  return pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) && name.length >= pattern.length : name === pattern;
}
