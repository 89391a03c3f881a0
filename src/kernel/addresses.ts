import { BlockList, isIP } from "node:net";

/** IP addresses and ranges of them; which of them are hosts on the public Internet. */

export type Address = { address: string; family: 4 | 6 };

export type AddressList = { has(address: Address): boolean };

/**
 * IANA's special-purpose registry of IPv4, but for the two anycast services in it that are public (AS112, AMT). The last
 * one is public by its number and yet no host out there.
 */
const NOT_PUBLIC_4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10", // carriers' NAT; Alibaba's metadata
  "127.0.0.0/8",
  "169.254.0.0/16", // link-local, most clouds' metadata among them
  "172.16.0.0/12",
  "192.0.0.0/24", // protocol assignments; Oracle's metadata
  "192.0.2.0/24",
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3", // multicast, reserved, broadcast
  "168.63.129.16/32", // Azure's own channel to its machines
];

/**
 * Of IPv6 only 2000::/3 is global unicast. All else goes with its two eighths and quarters: loopback, unspecified, IPv4 as
 * IPv6 (mapped ::ffff:0:0/96, compatible ::/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard, SRv6, unique local, link
 * and site local, multicast. What follows is special within it.
 */
const NOT_PUBLIC_6 = [
  "::/3",
  "4000::/2",
  "8000::/1",
  "2001::/23", // Teredo, ORCHID, benchmarks and other protocols
  "2001:db8::/32",
  "2002::/16", // 6to4: an IPv4 address in disguise
  "3fff::/20",
];

/** @throws RangeError for what is neither an address nor a range. */
export function listOf(ranges: readonly string[]): AddressList {
  // Apart, since Node takes an IPv4 address for its mapped form, and so for a member of ::/3.
  const lists = { 4: new BlockList(), 6: new BlockList() };
  for (const range of ranges) {
    const [address = "", bits, ...rest] = range.split("/");
    const family = isIP(address) as 0 | 4 | 6;
    const longest = family === 6 ? 128 : 32;
    const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || address.includes("%") || rest.length > 0 || prefix < 0 || prefix > longest) {
      throw new RangeError(`${range} is no address and no range such as 10.0.0.0/8`);
    }
    lists[family].addSubnet(address, prefix, nameOf(family));
  }
  return { has: ({ address, family }) => lists[family].check(withoutZone(address), nameOf(family)) };
}

const withoutZone = (address: string) => address.split("%", 1)[0]!;

const nameOf = (family: 4 | 6) => (family === 6 ? "ipv6" : "ipv4");

const notPublic = listOf([...NOT_PUBLIC_4, ...NOT_PUBLIC_6]);

/** Whether a host on the public Internet can have this address, as far as the address tells. */
export function isPublic(address: Address): boolean {
  return !notPublic.has(address) && !isIsatap(address);
}

/** ISATAP hides an IPv4 address in the second half of any prefix. */
function isIsatap({ address, family }: Address): boolean {
  if (family === 4) return false;
  const groups = groupsOf(address);
  return (groups[4]! & 0xfdff) === 0 && groups[5] === 0x5efe;
}

/** The IPv4 address that a mapped (::ffff:1.2.3.4) or NAT64 (64:ff9b::1.2.3.4) one leads to. */
export function embeddedIn(address: Address): Address | undefined {
  if (address.family === 4 || !embedding.has(address)) return undefined;
  const [high, low] = groupsOf(address.address).slice(6) as [number, number];
  return { address: [high >> 8, high & 255, low >> 8, low & 255].join("."), family: 4 };
}

const embedding = listOf(["::ffff:0:0/96", "64:ff9b::/96"]);

function groupsOf(address: string): number[] {
  // URLs write the last two groups in hexadecimal, whatever they were written in.
  const plain = URL.parse(`http://[${withoutZone(address)}]/`)?.hostname.slice(1, -1) ?? "::";
  const [before = "", after] = plain.split("::");
  const numbers = (text: string) =>
    text.split(":").flatMap((group) => (group === "" ? [] : [Number.parseInt(group, 16)]));
  const [left, right] = [numbers(before), numbers(after ?? "")];
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

/**
 * A host as URLs write it: lower case, international names in ASCII, 2130706433 and 0x7f.1 as 127.0.0.1, no brackets, no
 * dot at the end. Undefined for what is none.
 */
export function canonicalHost(host: string): string | undefined {
  if (/[/?#@\\\s]/.test(host)) return undefined;
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const inUrl = isIP(bare) === 6 ? `[${withoutZone(bare)}]` : bare;
  const url = /:\d*$/.test(inUrl) ? undefined : URL.parse(`http://${inUrl}/`);
  const found = url?.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  return found === undefined || found === "" ? undefined : found;
}

/** The address that a host as URLs write it is, if it is none of a name. */
export function literalOf(host: string): Address | undefined {
  const family = isIP(host);
  return family === 0 ? undefined : { address: host, family: family as 4 | 6 };
}
