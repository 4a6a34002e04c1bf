import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { malformed, Problem } from "../base/problem.ts";

const MAX_FIELDS = 200;
/** Headers that must not repeat: two programs could use different ones. A bit for each. */
const SINGLE = new Map([
  "host", "authorization", "content-type", "content-encoding", "content-length",
  "transfer-encoding", "origin", "expect",
].map((name, index) => [name, 1 << index]));
const HOST = SINGLE.get("host") ?? 0;
/** Host (RFC 9110 §7.2): a name (RFC 3986 §3.2.2), an IPv4 or an IPv6 address, and a port. */
const HOST_FORM = /^(?:\[[\da-f:.]+\]|(?:[\w\-.~!$&'()*+,;=]|%[\da-f]{2})*)(?::\d*)?$/i;

/**
 * Returns what is wrong with the head of a request, or undefined. It refuses what Node's parser
 * accepts, but a proxy before this server might read in another way.
 */
export function findHeadError({ httpVersion, url = "", rawHeaders }: {
  readonly httpVersion: string;
  readonly url?: string | undefined;
  /** Names and values alternate. */
  readonly rawHeaders: readonly string[];
}): Problem | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return malformed("Speak HTTP/1.1 here.");
  // RFC 9112 §3.2: a request target has no fragment.
  if (url.includes("#")) return malformed("The request target holds a fragment.");
  if (rawHeaders.length > 2 * MAX_FIELDS) {
    return new Problem(431, "headers_too_large", `There are more than ${MAX_FIELDS} headers.`);
  }
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    const bit = SINGLE.get(name);
    if (bit === undefined) continue;
    if ((seen & bit) !== 0) return malformed(`The header field ${name} is there twice.`);
    seen |= bit;
    const value = rawHeaders[index + 1] ?? "";
    if (name === "host" && !HOST_FORM.test(value)) return malformed("Host is not well-formed.");
    if (name !== "transfer-encoding") continue;
    // RFC 9112 §6.1: not in HTTP/1.0. Chunked is the only coding that is understood here.
    if (httpVersion === "1.0") return malformed("HTTP/1.0 has no Transfer-Encoding.");
    if (value.toLowerCase() !== "chunked") {
      return malformed("The only Transfer-Encoding taken is chunked.");
    }
  }
  // RFC 9112 §3.2.
  return httpVersion === "1.1" && (seen & HOST) === 0 ? malformed("Host is missing.") : undefined;
}

/** Estimates the bytes that a request takes while nobody reads its body. */
export function estimateHeld({ headers, rawHeaders, url = "", readableHighWaterMark }: {
  readonly headers: HttpRequest["headers"];
  readonly rawHeaders: readonly string[];
  readonly url?: string | undefined;
  readonly readableHighWaterMark: number;
}): number {
  // Node keeps each field twice: as received and by name.
  const fields = rawHeaders.reduce((sum, text) => sum + 2 * text.length + 40, 2 * url.length);
  return hasBody({ headers }) ? fields + readableHighWaterMark : fields;
}
