import type { Command } from "commander";
import type { OutboundRules } from "../../../client/identity.ts";
import { UsageError } from "../usage.ts";

export type OutboundOptions = { outboundAllow?: string; outboundHosts?: string; outboundPorts?: string };

/** Where a tenant's calls may lead, as options. */
export function outboundOptions(command: Command): Command {
  return command
    .option("--outbound-allow <ranges>", "addresses its calls may reach although they are not public, or none")
    .option("--outbound-hosts <hosts>", "the only hosts they may reach, apart by commas; all, or none")
    .option("--outbound-ports <ports>", "the only ports they may reach; all, or none");
}

/** What is not said stays as it is. */
export async function changedOutbound(
  options: { [Key in keyof OutboundOptions]: OutboundOptions[Key] | undefined },
  read: () => Promise<OutboundRules | null>,
): Promise<{ outbound?: OutboundRules }> {
  const { outboundAllow: allow, outboundHosts: hosts, outboundPorts: ports } = options;
  if (allow === undefined && hosts === undefined && ports === undefined) return {};
  const before = (await read()) ?? { allow: [], hosts: null, ports: null };
  return {
    outbound: {
      allow: allow === undefined ? before.allow : wordsOf(allow),
      hosts: hosts === undefined ? before.hosts : hosts === "all" ? null : wordsOf(hosts),
      ports: ports === undefined ? before.ports : ports === "all" ? null : wordsOf(ports).map(readPort),
    },
  };
}

const wordsOf = (text: string) => (text === "none" ? [] : text.split(",").map((word) => word.trim()));

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new UsageError(`--outbound-ports: found "${text}"; allowed: numbers apart by commas, all, or none`);
}

export function showOutbound(rules: OutboundRules | null): string {
  if (rules === null) return "public addresses";
  const { allow, hosts, ports } = rules;
  return [
    allow.length === 0 ? "public addresses" : `public addresses and ${allow.join(", ")}`,
    hosts === null ? undefined : `hosts ${hosts.join(", ") || "none"}`,
    ports === null ? undefined : `ports ${ports.join(", ") || "none"}`,
  ]
    .filter((part) => part !== undefined)
    .join("; ");
}
