import { type Address, parseAddress } from "../base/address.ts";
import { hostOf } from "../base/base_url.ts";
import { type Cidr, cidrContains } from "../base/cidr.ts";
import { isPublicAddress } from "../base/public_address.ts";

/** Why the guard does not connect: it must not, it cannot guard, or a name has no address. */
export class EgressError extends Error {
  override readonly name = "EgressError";
  readonly code: `EGRESS_${"REFUSED" | "UNSUPPORTED"}` | `NAME_LOOKUP_${"FAILED" | "UNANSWERED"}`;

  constructor(code: EgressError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Whether callbacks may go to an address: a public one, or one in a block of `allow`. */
export function isReachable(address: Address, allow: readonly Cidr[]): boolean {
  return isPublicAddress(address) || allow.some((cidr) => cidrContains(cidr, address));
}

/** The id of a receiver: 128 bits in hexadecimal. */
const RECEIVER_ID = /^[0-9a-f]{32}$/;

/**
 * Whether a URL is that of a receiver of this service: `receivers`, which begins with a literal
 * address, and then an id. So callbacks reach no other port and no other path of the service.
 */
export function isReceiver(url: string, receivers: string | undefined): boolean {
  return receivers !== undefined && url.startsWith(receivers) &&
    RECEIVER_ID.test(url.slice(receivers.length));
}

/**
 * Whether callbacks may go to a URL: it is http(s), and a literal address in it is reachable. The
 * addresses of a name are checked when a connection is made.
 */
export function isReachableUrl(url: URL, allow: readonly Cidr[]): boolean {
  if (!/^https?:$/.test(url.protocol)) return false;
  // A URL's host is canonical: decimal, octal and hexadecimal IPv4 have become dotted quads.
  const literal = parseAddress(hostOf(url));
  return literal === undefined || isReachable(literal, allow);
}

/** The error of a target, an address or a name, that callbacks may not reach. */
export function refusal(target: string): EgressError {
  return new EgressError("EGRESS_REFUSED", `not a reachable address: ${target}`);
}
