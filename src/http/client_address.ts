import { type Address, formatAddress, nat64Address, parseAddress } from "../base/address.ts";
import { type Cidr, cidrContains } from "../base/cidr.ts";

/**
 * Returns the address of the client behind trusted proxies. X-Forwarded-For is read from its right
 * end, where the nearest proxy wrote, as long as the writer of an entry is a trusted proxy. Entries
 * that a client wrote itself are further left and are never believed.
 */
export function clientAddress(
  socketAddress: string,
  forwardedFor: string,
  trusted: readonly Cidr[],
): string {
  let client = peerAddress(socketAddress);
  const hops = trusted.length === 0 ? [] : forwardedFor.split(",").reverse();
  for (const hop of hops) {
    if (!isTrustedProxy(client, trusted)) break;
    const next = parseAddress(withoutPort(hop.trim()));
    if (next === undefined) break;
    client = next;
  }
  return client ? formatAddress(client) : socketAddress;
}

/** The address of a socket's other end, without the zone of a link-local one (RFC 4007 §11). */
export function peerAddress(socketAddress: string): Address | undefined {
  return parseAddress(socketAddress.replace(/%.*/, ""));
}

/** Some proxies write the port, too, and an IPv6 address then in brackets (RFC 7239 §6). */
function withoutPort(hop: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(hop) ?? [];
  return bracketed ?? plain ?? hop;
}

/** Whether an address is a trusted proxy, which may name the client of a request. */
export function isTrustedProxy(address: Address | undefined, trusted: readonly Cidr[]): boolean {
  return address !== undefined && trusted.some((cidr) => cidrContains(cidr, address));
}

/**
 * Returns the unit in which failures are counted: an IPv4 address, or the /64 of an IPv6 address,
 * the least that one subscriber has. A translator puts all of IPv4 into one /64 (RFC 7755): there
 * the unit is the embedded IPv4 address.
 */
export function throttleAddress(text: string): string {
  return throttleNetworks(text)[0].first;
}

/** Returns the networks of an address in which failures are counted, the narrowest first. */
export function throttleNetworks(text: string): [Network, ...Network[]] {
  const address = peerAddress(text);
  const translated = address && nat64Address(address);
  if (translated) return throttleNetworks(formatAddress(translated));
  if (address?.family !== 6) return [{ first: text, last: text, share: 1 }];
  const digits = address.value.toString(16).padStart(32, "0");
  const network = (length: number, share: number): Network => {
    const prefix = digits.slice(0, length);
    return { first: prefix.padEnd(16, "0"), last: prefix.padEnd(16, "f"), share };
  };
  // One subscriber has a /64 at least, and perhaps a /56 or a /48.
  return [network(16, 1), network(14, 4), network(12, 16)];
}

/** Units from `first` to `last`, and how many times the failures of one address they may have. */
export interface Network {
  readonly first: string;
  readonly last: string;
  readonly share: number;
}
