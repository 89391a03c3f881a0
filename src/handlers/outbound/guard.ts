import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

/**
 * Where tenants' URLs may lead: to public addresses, and to what the operator allows. A name is resolved once, every
 * address is looked at, and these very addresses are dialled: a name that changes its mind in between gains nothing.
 */
export type OutboundGuard = {
  /** The addresses behind a host name or an IP literal. Throws ForbiddenAddress, or the resolver's error. */
  resolve(host: string): Promise<Address[]>;
};

export type Address = { address: string; family: 4 | 6 };

export class ForbiddenAddress extends Error {
  readonly code = "address-forbidden";
}

/** IANA's special-purpose registries: everything that is not a host on the public Internet. */
const NOT_PUBLIC = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16", // link-local, the clouds' metadata among them
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3", // multicast, reserved, broadcast
  "::/128",
  "::1/128",
  "64:ff9b::/96", // an IPv4 address in disguise, as the next two
  "64:ff9b:1::/48",
  "2002::/16",
  "2001::/23",
  "2001:db8::/32",
  "100::/64",
  "3fff::/20",
  "5f00::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
];

/** `allowed`: addresses and CIDR ranges that may be reached although they are not public. */
export function createOutboundGuard(
  allowed: readonly string[],
  resolveName: (host: string) => Promise<Address[]> = lookUp,
): OutboundGuard {
  const forbidden = listOf(NOT_PUBLIC);
  const exempt = listOf(allowed);
  return {
    async resolve(host) {
      const literal = host.replace(/^\[(.*)\]$/, "$1");
      const family = isIP(literal);
      const found = family === 0 ? await resolveName(literal) : [{ address: literal, family: family as 4 | 6 }];
      const refused = found.find((one) => isIn(forbidden, one) && !isIn(exempt, one));
      if (refused === undefined) return found;
      throw new ForbiddenAddress(`${host} is at ${refused.address}, which is not a public address`);
    },
  };
}

async function lookUp(host: string): Promise<Address[]> {
  return (await lookup(host, { all: true })) as Address[];
}

/** Throws a RangeError for what is neither an address nor a range. */
export function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits, ...rest] = range.split("/");
    const family = isIP(address);
    const prefix = bits === undefined ? (family === 6 ? 128 : 32) : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || rest.length > 0 || prefix < 0 || prefix > (family === 6 ? 128 : 32)) {
      throw new RangeError(`${range} is no address and no range such as 10.0.0.0/8`);
    }
    list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** An IPv4 address written as IPv6 (::ffff:127.0.0.1) is what it is. */
function isIn(list: BlockList, { address, family }: Address): boolean {
  const bare = address.replace(/%.*$/, "");
  return list.check(bare, family === 6 ? "ipv6" : "ipv4");
}
