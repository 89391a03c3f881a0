import type { OutboundRules } from "../../src/domain/outbound/rules.ts";
import { createOutbound, type OutboundOptions } from "../../src/handlers/outbound/create-outbound.ts";
import { systemClock } from "../../src/kernel/clock.ts";

/** Ways out that may reach this machine, where receivers of tests are; names lead where `names` says. */
export function outboundOf(change: Partial<OutboundOptions> & { names?: Record<string, string | string[]> } = {}) {
  const { names = {}, ...options } = change;
  return createOutbound({
    clock: systemClock,
    rulesOf: async () => null,
    allow: ["127.0.0.0/8"],
    connectTimeoutMs: 1_000,
    resolveName: async (name) => {
      const found = [names[name] ?? []].flat();
      if (found.length === 0) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), NOT_FOUND);
      return found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    },
    ...options,
  });
}

const NOT_FOUND = { code: "ENOTFOUND", syscall: "getaddrinfo" };

export const rules = (change: Partial<OutboundRules> = {}): OutboundRules => ({
  allow: [],
  hosts: null,
  ports: null,
  ...change,
});
