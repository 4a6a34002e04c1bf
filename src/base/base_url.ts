import { isIP } from "node:net";
import { type Parsed, quote } from "./env.ts";

/**
 * Returns a host name or an IP address (without brackets) as a URL writes it, or undefined for
 * other text. `0` and `0x0` become `0.0.0.0`, `::0` becomes `::`.
 */
export function canonicalHost(text: string): string | undefined {
  const isAddress = isIP(text) !== 0 && !text.includes("%");
  const isName = text.length <= 253 && /^[A-Za-z0-9_][\w-]*(\.[\w-]+)*$/.test(text);
  if (!isAddress && !isName) return undefined;
  const url = URL.parse(`http://${bracket(text)}`);
  return url ? hostOf(url) : undefined;
}

/** Returns the host of a URL, an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Whether listening on this canonical host means listening on every address. */
export function isWildcardHost(host: string): boolean {
  return ["0.0.0.0", "::", "::ffff:0:0"].includes(host);
}

/** Returns the base URL of a server that listens on this host and port. */
export function listeningUrl(host: string, port: number): string {
  return new URL(`http://${bracket(host)}:${port}`).origin;
}

/**
 * Reads the public address of a server: an absolute http or https URL in canonical form, with or
 * without a path, without a trailing slash. Clients compare the URL as text (RFC 8414 §3.3, RFC
 * 9207 §2.4), so only one spelling is accepted.
 */
export function parseBaseUrl(text: string): Parsed<string> {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || text.length > 2_048) {
    return { wrong: "is not an absolute http or https URL, such as https://api.example.com" };
  }
  if (url.username !== "" || url.password !== "" || text.includes("@")) {
    return { wrong: "has credentials or an @, which have no place in a public address" };
  }
  if (/[?#]/.test(text)) return { wrong: "has a query or a fragment; leave them out" };
  if (isWildcardHost(hostOf(url))) {
    return { wrong: "is a wildcard address, which nobody can call; give the public one" };
  }
  const canonical = url.href.replace(/\/+$/, "");
  if (!/^(\/[\w.~-]+)*$/.test(url.pathname.replace(/\/+$/, ""))) {
    return { wrong: "has a path with an empty segment or one beyond A-Z a-z 0-9 . _ ~ -" };
  }
  if (canonical !== text) return { wrong: `is not in canonical form; write ${quote(canonical)}` };
  return { value: text };
}

/** Whether this is an origin as browsers write it: scheme, host, and any port but the default. */
export function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.parse(text)?.origin === text;
}

/** Returns the path of a base URL, "" where it has none. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "");
}

function bracket(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
