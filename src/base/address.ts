import { isIP } from "node:net";

/**
 * One IP address. An IPv4-mapped IPv6 address (::ffff:a.b.c.d) is always held as the IPv4 address
 * in it, so that one host has one form whatever kind of socket reported it.
 */
export interface Address {
  readonly family: 4 | 6;
  /** The address as one number: 32 bits of IPv4 or 128 bits of IPv6. */
  readonly value: bigint;
}

/**
 * Reads an address as inet_pton does: dotted-quad IPv4 in decimal without leading zeros, or any
 * form of RFC 4291 §2.2 without brackets, zone or prefix. Anything else is undefined.
 */
export function parseAddress(text: string): Address | undefined {
  const family = isIP(text);
  if (family === 4) return { family, value: readIPv4(text) };
  if (family !== 6 || text.includes("%")) return undefined;
  const value = readIPv6(text);
  return value >> 32n === 0xffffn ? embeddedIPv4(value) : { family, value };
}

/** The canonical text: dotted quad, or IPv6 in lower case and shortened as in RFC 5952 §4. */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((at) => String((value >> at) & 0xffn)).join(".");
  const groups = value.toString(16).padStart(32, "0").replace(/.{4}(?=.)/g, "$&:");
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
}

function readIPv4(text: string): bigint {
  return BigInt(text.split(".").reduce((value, octet) => value * 256 + Number(octet), 0));
}

function readIPv6(text: string): bigint {
  const [head = "", tail = ""] = text.split("::").map(groupDigits);
  return BigInt(`0x${head.padEnd(32 - tail.length, "0")}${tail}`);
}

/** The digits of one side of "::", four for each group. A dotted quad stands for two groups. */
function groupDigits(text: string): string {
  return text === "" ? "" : text.split(":").map((part) =>
    part.includes(".") ? readIPv4(part).toString(16).padStart(8, "0") : part.padStart(4, "0")
  ).join("");
}

/** The IPv4 address in the last 32 bits. */
export function embeddedIPv4(value: bigint): Address {
  return { family: 4, value: value & 0xffff_ffffn };
}

const NAT64 = 0x64_ff9bn << 64n;

/** Returns the IPv4 address in a NAT64 address (64:ff9b::/96, RFC 6052 §2.1), else undefined. */
export function nat64Address({ family, value }: Address): Address | undefined {
  return family === 6 && value >> 32n === NAT64 ? embeddedIPv4(value) : undefined;
}
