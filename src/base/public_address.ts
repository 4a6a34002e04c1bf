import { type Address, embeddedIPv4, nat64Address } from "./address.ts";
import { type Cidr, cidrContains, parseCidr } from "./cidr.ts";

/**
 * The IANA IPv4 Special-Purpose Address Registry, the multicast space, and one address outside the
 * registry: within Azure it is the machine's own host, which hands out secrets. Then the part of
 * the IPv6 registry that lies in 2000::/3.
 */
const SPECIAL = [
  "0.0.0.0/8", // this network (RFC 791 §3.2)
  "10.0.0.0/8", // private use (RFC 1918)
  "100.64.0.0/10", // shared address space (RFC 6598)
  "127.0.0.0/8", // loopback (RFC 1122 §3.2.1.3)
  "168.63.129.16/32", // Azure's platform address
  "169.254.0.0/16", // link local (RFC 3927)
  "172.16.0.0/12", // private use (RFC 1918)
  "192.0.0.0/24", // IETF protocol assignments (RFC 6890 §2.1)
  "192.0.2.0/24", // documentation (RFC 5737)
  "192.31.196.0/24", // AS112 (RFC 7535)
  "192.52.193.0/24", // AMT (RFC 7450)
  "192.88.99.0/24", // 6to4 relay anycast, deprecated (RFC 7526)
  "192.168.0.0/16", // private use (RFC 1918)
  "192.175.48.0/24", // AS112 (RFC 7534)
  "198.18.0.0/15", // benchmarking (RFC 2544)
  "198.51.100.0/24", // documentation (RFC 5737)
  "203.0.113.0/24", // documentation (RFC 5737)
  "224.0.0.0/4", // multicast (RFC 5771)
  "240.0.0.0/4", // reserved, and limited broadcast (RFC 1112 §4, RFC 919 §7)
  "2001::/23", // IETF protocol assignments: Teredo, ORCHID, benchmarking, AMT … (RFC 2928)
  "2001:db8::/32", // documentation (RFC 3849)
  "2002::/16", // 6to4 (RFC 3056)
  "2620:4f:8000::/48", // AS112 (RFC 7534)
  "3fff::/20", // documentation (RFC 9637)
];

/** Parsed at the first use: Node's pattern of IPv6 addresses takes 5 ms the first time. */
let special: readonly Cidr[] | undefined;

/**
 * Whether an address is ordinary public unicast. Every block of the IANA special-purpose address
 * registries is refused, even if marked globally reachable. Such blocks are anycast services of the
 * network (PCP, TURN, AS112, AMT), where nobody runs a server. In IPv6 only 2000::/3 is assigned to
 * unicast (RFC 4291 §2.4, IANA IPv6 address space). Some IPv6 addresses embed an IPv4 address. A
 * mapped one counts as that. NAT64 (64:ff9b::/96, RFC 6052 §2.1) and ISATAP (RFC 5214 §6.1) must
 * embed a public one. IPv4-compatible, IPv4-translated, local NAT64 (64:ff9b:1::/48), 6to4 and
 * Teredo are refused. A network's own NAT64 prefix looks like other public space.
 */
export function isPublicAddress(address: Address): boolean {
  const translated = nat64Address(address);
  if (translated) return isPublicAddress(translated);
  special ??= SPECIAL.map(toBlock);
  if (special.some((block) => cidrContains(block, address))) return false;
  if (address.family === 4) return true;
  if (address.value >> 125n !== 0b001n) return false; // not in 2000::/3
  return !isIsatap(address.value) || isPublicAddress(embeddedIPv4(address.value));
}

/** Interface identifier ::[02]00:5efe:a.b.c.d, with or without the "universal" bit. */
function isIsatap(value: bigint): boolean {
  const identifier = (value >> 32n) & 0xffff_ffffn;
  return identifier === 0x0000_5efen || identifier === 0x0200_5efen;
}

function toBlock(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new TypeError(`not a block of addresses: ${text}`);
  return cidr;
}
