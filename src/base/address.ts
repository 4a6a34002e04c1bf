/**
 * One IP address. An IPv4-mapped IPv6 address (::ffff:a.b.c.d) is always held as the IPv4 address
 * that it stands for, so that one host has one form whatever kind of socket reported it.
 */
export interface Address {
  readonly family: 4 | 6;
  /** The address as one number: 32 bits of IPv4 or 128 bits of IPv6. */
  readonly value: bigint;
}

/** How many bits an address of the family has. */
export const FAMILY_BITS = { 4: 32, 6: 128 } as const;

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;

/**
 * Reads an address as inet_pton does: dotted-quad IPv4 in decimal without leading zeros, or any
 * form of RFC 4291 §2.2 without brackets, zone or prefix. Anything else is undefined.
 */
export function parseAddress(text: string): Address | undefined {
  if (!text.includes(":")) {
    const value = readIPv4(text);
    return value === undefined ? undefined : { family: 4, value };
  }
  const value = readIPv6(text);
  if (value === undefined) return undefined;
  return value >> 32n === 0xffffn ? embeddedIPv4(value) : { family: 6, value };
}

/** The canonical text: dotted quad, or IPv6 in lower case and shortened as in RFC 5952 §4. */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((at) => String((value >> at) & 0xffn)).join(".");
  const groups = [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n]
    .map((at) => ((value >> at) & 0xffffn).toString(16));
  const { start, length } = longestZeroRun(groups);
  if (length < 2) return groups.join(":");
  return `${groups.slice(0, start).join(":")}::${groups.slice(start + length).join(":")}`;
}

/**
 * True for ordinary public unicast addresses only. Every block of the IANA special-purpose address
 * registries is refused, those marked globally reachable too: they are anycast services of the
 * network (PCP, TURN, AS112, AMT), where nobody's server lives. Of IPv6 only 2000::/3 is assigned
 * to unicast (RFC 4291 §2.4, IANA IPv6 address space). What embeds an IPv4 address:
 * mapped is that IPv4 address; NAT64 (64:ff9b::/96, RFC 6052 §2.1) and ISATAP (RFC 5214 §6.1) must
 * embed a public one; IPv4-compatible, IPv4-translated, local NAT64 (64:ff9b:1::/48), 6to4 and
 * Teredo are refused. A NAT64 prefix of a network's own cannot be told from other public space.
 */
export function isPublicAddress(address: Address): boolean {
  if (address.family === 4) return !isWithin(SPECIAL_IPV4, address);
  if (isWithin(NAT64, address)) return isPublicAddress(embeddedIPv4(address.value));
  if (!isWithin(GLOBAL_UNICAST, address) || isWithin(SPECIAL_IPV6, address)) return false;
  return !isIsatap(address.value) || isPublicAddress(embeddedIPv4(address.value));
}

function readIPv4(text: string): bigint | undefined {
  const octets = text.split(".");
  if (octets.length !== 4) return undefined;
  let value = 0n;
  for (const octet of octets) {
    // A leading zero means octal to some readers and decimal to others (RFC 6943 §3.1.1).
    if (!OCTET.test(octet) || Number(octet) > 255) return undefined;
    value = (value << 8n) | BigInt(octet);
  }
  return value;
}

function readIPv6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = readGroups(halves[0] ?? "", halves.length === 1);
  const tail = readGroups(halves[1] ?? "", true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  // "::" stands for one group of zeros at least.
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** The 16-bit groups of one side of "::"; only the address's end may be a dotted quad. */
function readGroups(text: string, atEnd: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (GROUP.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const quad = atEnd && index === parts.length - 1 ? readIPv4(part) : undefined;
    if (quad === undefined) return undefined;
    groups.push(Number(quad >> 16n), Number(quad & 0xffffn));
  }
  return groups;
}

/** The first of the longest runs of zero groups (RFC 5952 §4.2.3). */
function longestZeroRun(groups: readonly string[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== "0") start = index + 1;
    else if (index + 1 - start > best.length) best = { start, length: index + 1 - start };
  }
  return best;
}

function embeddedIPv4(value: bigint): Address {
  return { family: 4, value: value & 0xffff_ffffn };
}

/** Interface identifier ::[02]00:5efe:a.b.c.d, with or without the "universal" bit. */
function isIsatap(value: bigint): boolean {
  const identifier = (value >> 32n) & 0xffff_ffffn;
  return identifier === 0x0000_5efen || identifier === 0x0200_5efen;
}

interface Block {
  readonly prefix: bigint;
  readonly bits: number;
}

function block(network: string, bits: number): Block {
  const address = parseAddress(network);
  if (address === undefined) throw new TypeError(`not an address: ${network}`);
  return { prefix: address.value >> BigInt(FAMILY_BITS[address.family] - bits), bits };
}

/** The blocks are of the address's family: each list is asked for one family alone. */
function isWithin(blocks: readonly Block[], { family, value }: Address): boolean {
  return blocks.some(({ prefix, bits }) => value >> BigInt(FAMILY_BITS[family] - bits) === prefix);
}

/**
 * IANA IPv4 Special-Purpose Address Registry, the multicast space, and one address that the
 * registry does not know: within Azure it is the machine's own host, which hands out secrets.
 */
const SPECIAL_IPV4: readonly Block[] = [
  block("0.0.0.0", 8), // this network (RFC 791 §3.2)
  block("10.0.0.0", 8), // private use (RFC 1918)
  block("100.64.0.0", 10), // shared address space (RFC 6598)
  block("127.0.0.0", 8), // loopback (RFC 1122 §3.2.1.3)
  block("168.63.129.16", 32), // Azure's platform address
  block("169.254.0.0", 16), // link local (RFC 3927)
  block("172.16.0.0", 12), // private use (RFC 1918)
  block("192.0.0.0", 24), // IETF protocol assignments (RFC 6890 §2.1)
  block("192.0.2.0", 24), // documentation (RFC 5737)
  block("192.31.196.0", 24), // AS112 (RFC 7535)
  block("192.52.193.0", 24), // AMT (RFC 7450)
  block("192.88.99.0", 24), // 6to4 relay anycast, deprecated (RFC 7526)
  block("192.168.0.0", 16), // private use (RFC 1918)
  block("192.175.48.0", 24), // AS112 (RFC 7534)
  block("198.18.0.0", 15), // benchmarking (RFC 2544)
  block("198.51.100.0", 24), // documentation (RFC 5737)
  block("203.0.113.0", 24), // documentation (RFC 5737)
  block("224.0.0.0", 4), // multicast (RFC 5771)
  block("240.0.0.0", 4), // reserved, and limited broadcast (RFC 1112 §4, RFC 919 §7)
];

const NAT64: readonly Block[] = [block("64:ff9b::", 96)];
const GLOBAL_UNICAST: readonly Block[] = [block("2000::", 3)];

/** IANA IPv6 Special-Purpose Address Registry, as far as it lies in 2000::/3. */
const SPECIAL_IPV6: readonly Block[] = [
  block("2001::", 23), // IETF protocol assignments: Teredo, ORCHID, benchmarking, AMT … (RFC 2928)
  block("2001:db8::", 32), // documentation (RFC 3849)
  block("2002::", 16), // 6to4 (RFC 3056)
  block("2620:4f:8000::", 48), // AS112 (RFC 7534)
  block("3fff::", 20), // documentation (RFC 9637)
];
