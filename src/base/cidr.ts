import { type Address, parseAddress } from "./address.ts";

/** A block of addresses, which share their first `prefixBits` bits with `network`. */
export interface Cidr {
  readonly network: Address;
  readonly prefixBits: number;
}

const FAMILY_BITS = { 4: 32, 6: 128 } as const;

/**
 * Reads `address/length`; a bare address is the block of that address alone. Returns undefined for
 * anything else, and for a network with bits set past its length. `10.1.2.3/8` is more likely an
 * error than a wish for all of 10.0.0.0/8, and such a block says whom to trust. An IPv4-mapped
 * block (`::ffff:10.0.0.0/104`) becomes its IPv4 block; it must not reach past the mapped
 * addresses.
 */
export function parseCidr(text: string): Cidr | undefined {
  const [base = "", length, ...more] = text.split("/");
  const network = parseAddress(base);
  if (network === undefined || more.length > 0) return undefined;
  const bits = FAMILY_BITS[network.family];
  if (length === undefined) return { network, prefixBits: bits };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) return undefined;
  // RFC 4291 §2.5.5.2: the IPv4 address in an IPv4-mapped IPv6 address begins after 96 bits.
  const isMapped = network.family === 4 && base.includes(":");
  const prefixBits = Number(length) - (isMapped ? 96 : 0);
  if (prefixBits < 0 || prefixBits > bits) return undefined;
  const hostBits = BigInt(bits - prefixBits);
  if ((network.value >> hostBits) << hostBits !== network.value) return undefined;
  return { network, prefixBits };
}

/**
 * Whether the address lies in the block. The families never mix: `::/0` contains no IPv4 address,
 * and `0.0.0.0/0` no IPv6 address. An IPv4-mapped address has been parsed as IPv4 and counts so.
 */
export function cidrContains({ network, prefixBits }: Cidr, address: Address): boolean {
  if (network.family !== address.family) return false;
  const hostBits = BigInt(FAMILY_BITS[network.family] - prefixBits);
  return network.value >> hostBits === address.value >> hostBits;
}
