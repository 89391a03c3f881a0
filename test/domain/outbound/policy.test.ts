import { describe, expect, it } from "vitest";
import { outboundPolicy } from "../../../src/domain/outbound/policy.ts";
import { type OutboundRules, outboundRulesSchema } from "../../../src/domain/outbound/rules.ts";
import { listOf } from "../../../src/kernel/addresses.ts";

const policyOf = (rules: Partial<OutboundRules> | null = null, allow: string[] = []) =>
  outboundPolicy(rules === null ? null : outboundRulesSchema.parse(rules), allow);
const refusal = (host: string, rules: Partial<OutboundRules> | null = null, allow: string[] = [], port = 443) =>
  policyOf(rules, allow).refusalOf({ host, port });

describe("an address that is no host on the public Internet is refused", () => {
  it.each([
    // IANA's IPv4 special-purpose registry
    "0.0.0.0",
    "0.255.0.1",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    // the same in other spellings
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "①②⑦.0.0.1",
    "0",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    // and of IPv6
    "::",
    "[::1]",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "::8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "100:0:0:1::1",
    "1fff::1",
    "2001::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700::5efe:10.0.0.1",
    "2606:4700::200:5efe:a00:1",
  ])("%s", (host) => {
    expect(refusal(host)).toBe("is not a public address");
  });

  it.each([
    "8.8.8.8",
    "100.63.255.255",
    "172.32.0.1",
    "192.31.196.1",
    "2606:4700::1111",
    "2a00::5eff:1",
    "example.com",
  ])("and %s is not", (host) => {
    expect(refusal(host)).toBeUndefined();
  });
});

describe("what an operator or an admin allows may be reached", () => {
  it("by the installation, or by one tenant beyond that", () => {
    expect(refusal("10.2.0.1", { allow: ["10.2.0.0/16"] })).toBeUndefined();
    expect(refusal("10.3.0.1", { allow: ["10.2.0.0/16"] })).toBe("is not a public address");
    expect(refusal("10.3.0.1", { allow: ["10.2.0.0/16"] }, ["10.3.0.1"])).toBeUndefined();
    expect(refusal("localhost", { allow: ["127.0.0.0/8"] })).toBeUndefined();
    expect(refusal("[fd00::1]", null, ["fd00::/8"])).toBeUndefined();
  });

  it("in its own family only: all of IPv6 is nothing of IPv4, and the other way round", () => {
    expect(refusal("10.0.0.1", null, ["::/0"])).toBe("is not a public address");
    expect(refusal("fd00::1", null, ["0.0.0.0/0"])).toBe("is not a public address");
    expect(refusal("::ffff:10.0.0.1", null, ["10.0.0.0/8"])).toBe("is not a public address");
  });

  it("and a form that leads to an IPv4 address is as good as that one", () => {
    expect(refusal("64:ff9b::8.8.8.8", null, ["64:ff9b::/96"])).toBeUndefined();
    expect(refusal("64:ff9b::10.0.0.1", null, ["64:ff9b::/96"])).toBe("is not a public address");
    expect(refusal("64:ff9b::10.0.0.1", null, ["64:ff9b::/96", "10.0.0.0/8"])).toBeUndefined();
    expect(refusal("::ffff:127.0.0.1", null, ["::/0"])).toBe("is not a public address");
  });
});

describe("a tenant that is held to some hosts and ports", () => {
  it("reaches those, by their names, and no others", () => {
    const rules = { hosts: ["api.example.com", "*.example.org", "8.8.8.8"] };
    for (const host of ["api.example.com", "API.Example.com.", "a.example.org", "a.b.example.org", "8.8.8.8"]) {
      expect([host, refusal(host, rules)]).toEqual([host, undefined]);
    }
    for (const host of [
      "example.com",
      "x.api.example.com",
      "example.org",
      ".example.org",
      "badexample.org",
      "8.8.4.4",
    ]) {
      expect([host, refusal(host, rules)]).toEqual([host, expect.stringMatching(/none of the hosts|is no host/)]);
    }
    expect(refusal("example.com", { ports: [443] })).toBeUndefined();
    expect(refusal("example.com", { ports: [443] }, [], 8443)).toMatch(/^port 8443 is none of those/);
    expect(refusal("example.com", { hosts: [] })).toMatch(/none of the hosts/);
  });

  it("does not get a private address by its name", () => {
    expect(refusal("10.0.0.1", { hosts: ["10.0.0.1"] })).toBe("is not a public address");
  });
});

it.each(["10.0.0.0/33", "10.0.0/8", "example.com", "::1/200", "10.0.0.0/8/8", "10.0.0.0/", "fe80::1%eth0", ""])(
  "%j is no range",
  (range) => {
    expect(() => listOf([range])).toThrow(RangeError);
    expect(outboundRulesSchema.safeParse({ allow: [range] }).success).toBe(false);
  },
);

it.each(["API.example.com", "*", "a.*.com", "https://a.com", "a.com:443", "2130706433", "bücher.example", "a b", ""])(
  "%j is no host to hold a tenant to",
  (host) => {
    expect(outboundRulesSchema.safeParse({ hosts: [host] }).success).toBe(false);
  },
);
