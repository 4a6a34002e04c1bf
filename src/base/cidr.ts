import { FAMILY_BITS, parseAddress } from "./address.ts";
import type { Address } from "./address.ts";

/** A block of addresses: all that share the first `prefixBits` bits with `network`. */
export interface Cidr {
  readonly network: Address;
  readonly prefixBits: number;
}

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;
/** Where the IPv4 address begins in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;

/**
 * Reads `address/length`; a bare address is the block of that address alone. Undefined for anything
 * else, and for a network with bits set past its length: `10.1.2.3/8` is more likely a slip than a
 * wish for all of 10.0.0.0/8, and such a block says whom to trust. An IPv4-mapped block
 * (`::ffff:10.0.0.0/104`) is that IPv4 block; one that would reach past the mapped addresses is
 * undefined.
 */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  const base = slash === -1 ? text : text.slice(0, slash);
  const network = parseAddress(base);
  if (network === undefined) return undefined;
  const bits = FAMILY_BITS[network.family];
  if (slash === -1) return { network, prefixBits: bits };
  const length = text.slice(slash + 1);
  if (!PREFIX_LENGTH.test(length)) return undefined;
  const isMapped = network.family === 4 && base.includes(":");
  const prefixBits = Number(length) - (isMapped ? MAPPED_BITS : 0);
  if (prefixBits < 0 || prefixBits > bits) return undefined;
  const hostBits = BigInt(bits - prefixBits);
  if ((network.value >> hostBits) << hostBits !== network.value) return undefined;
  return { network, prefixBits };
}

/**
 * Whether the address lies in the block. The families never mix: `::/0` holds no IPv4 address and
 * `0.0.0.0/0` no IPv6 one; an IPv4-mapped IPv6 address is parsed as its IPv4 address and counts so.
 */
export function cidrContains({ network, prefixBits }: Cidr, address: Address): boolean {
  if (network.family !== address.family) return false;
  const hostBits = BigInt(FAMILY_BITS[network.family] - prefixBits);
  return network.value >> hostBits === address.value >> hostBits;
}
