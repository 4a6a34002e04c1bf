import { decodeFormText } from "../base/form.ts";
import { described, text } from "../base/shape.ts";
import type { App } from "./app.ts";

/** The most characters of an app URL or a redirect URI. */
const MAX_LENGTH = 2048;

/** Visible ASCII without `\` and `#`: RFC 3986 §2 allows no more, and fragments are refused. */
const PLAIN_TEXT = /^[\x21\x22\x24-\x5b\x5d-\x7e]+$/;

/** Servers read these in different ways: encoded dots, slashes and percent signs, `;`, `//`. */
const AMBIGUOUS_PATH = /%2e|%2f|%5c|%25|;|\/\//i;

/** Without `;`, `*` and `,`, which the URL Standard allows: they are syntax in a CSP header. */
const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:]+\])$/;

const LOOPBACK_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** A URL as `parseAppUrl` takes it, in JSON. */
export const PLAIN_URL = text(
  (url) => parseAppUrl(url) ? undefined : "Must be a canonical https URL (http only on " +
    "localhost, 127.0.0.1 or [::1]), without credentials, query and fragment.",
  { format: "uri", pattern: "^https?://[^?#]+$", maxLength: MAX_LENGTH },
);

export const APP_URL = described("Every redirect URI is at or below it.", PLAIN_URL);

/** The error for a redirect URI that the app may not list. */
export const NOT_BELOW_URL = "Must lie at or below the app's url.";

/** A redirect URI in JSON, of any app: only compared with its own origin. */
export const REDIRECT_URI = text((uri) => {
  const url = URL.parse(uri)?.origin ?? "";
  return checkRedirectUri(uri, { url, redirectUris: [] }) ? undefined : NOT_BELOW_URL;
}, { format: "uri", pattern: "^https?://[^#]+$", maxLength: MAX_LENGTH });

/**
 * Parses an app URL. Returns undefined unless the URL is canonical, without query and fragment, and
 * https; http is allowed on `localhost`, `127.0.0.1` and `[::1]` (RFC 9700 §2.6, RFC 8252 §7.3).
 * The host must have no wildcard and no character that is syntax in a policy header.
 */
export function parseAppUrl(text: string): URL | undefined {
  const url = parseCanonical(text);
  if (url === undefined || text.includes("?") || !PLAIN_HOST.test(url.hostname)) return undefined;
  return url.protocol === "https:" || LOOPBACK_HOSTS.includes(url.hostname) ? url : undefined;
}

/** Whether a host is the user's own machine, on which any program may listen. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:.*\.)?localhost$|^127(?:\.\d+){3}$|^\[::1\]$/.test(hostname);
}

/** Whether another program on the user's device could receive this redirect (RFC 8252 §8.6). */
export function isImpersonable({ type }: Pick<App, "type">, redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  return type === "public" && (isLoopbackHost(hostname) || !/^https?:$/.test(protocol));
}

/** Whether nobody on the network can read or change what is sent to a URL. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || protocol === "http:" && isLoopbackHost(hostname);
}

/**
 * Whether `raw`, exactly as sent, is a redirect URI of `app` (RFC 6749 §3.1.2). It must be
 * canonical, have the app URL's origin, and lie at or below its path. If the app lists redirect
 * URIs, it must equal one of them (RFC 9700 §2.1). If the app URL is a loopback address without a
 * port, any port matches, also for a listed redirect URI without a port (RFC 8252 §7.3).
 */
export function checkRedirectUri(raw: string, app: Pick<App, "url" | "redirectUris">): boolean {
  const appUrl = parseAppUrl(app.url);
  const url = parseCanonical(raw);
  if (appUrl === undefined || url === undefined) return false;
  const origin = takesAnyPort(appUrl) ? `${url.protocol}//${url.hostname}` : url.origin;
  if (origin !== appUrl.origin) return false;
  const { pathname } = appUrl;
  const folder = pathname.endsWith("/") ? pathname : `${pathname}/`;
  if (url.pathname !== pathname && !url.pathname.startsWith(folder)) return false;
  if (app.redirectUris.length === 0 || app.redirectUris.includes(raw)) return true;
  // `raw` is canonical, so it begins with its own origin, with its port.
  return app.redirectUris.includes(origin + raw.slice(url.origin.length));
}

/** A reversed domain name, so with a dot: no scheme that a browser executes has one. */
const PRIVATE_USE = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/[^\\#\x00-\x20\x7f-\uffff]+$/;

/**
 * Whether `raw` is a listed redirect URI of an app that a metadata document describes. It is https,
 * has a private-use scheme (RFC 8252 §7.1), or is http on the user's machine, with any port (§7.3).
 */
export function isListedRedirectUri(raw: string, redirectUris: readonly string[]): boolean {
  const url = parseCanonical(raw);
  if (!url) {
    const isPrivateUse = raw.length <= MAX_LENGTH && PRIVATE_USE.test(raw) && URL.canParse(raw);
    return isPrivateUse && redirectUris.includes(raw);
  }
  if (!PLAIN_HOST.test(url.hostname)) return false;
  if (url.protocol === "https:") return redirectUris.includes(raw);
  if (!LOOPBACK_HOSTS.includes(url.hostname)) return false;
  const [wanted, ...listed] = [raw, ...redirectUris].map((uri) => uri.replace(ANY_PORT, "$1"));
  return wanted !== undefined && listed.includes(wanted);
}

const ANY_PORT = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d+/;

/** Returns the origin of a redirect URI, or its scheme if it has no origin. */
export function originOf(redirectUri: string): string {
  const { origin, protocol } = new URL(redirectUri);
  return origin === "null" ? protocol : origin;
}

/**
 * Returns the redirect URI with `params` added to its query, form-encoded (RFC 6749 §4.1.2); the
 * query that it has stays byte for byte. Parameters in there that only this server may send
 * (`code`, `state`, `iss`, `error…`, and those of `params`) are removed, so that nobody can plant
 * one. Undefined values are left out.
 */
export function redirectWith(
  redirectUri: string,
  params: Readonly<Record<string, string | undefined>>,
): string {
  const [address = "", ...own] = redirectUri.split("?");
  const kept = own.join("?").split("&").filter((pair) => !isReserved(pair, params)).join("&");
  const added = Object.entries(params).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeParameter(name)}=${encodeParameter(value)}`],
  );
  const query = (kept === "" ? added : [kept, ...added]).join("&");
  return query === "" ? address : `${address}?${query}`;
}

/** Parses `raw` if every parser will read the same URL in it; otherwise returns undefined. */
export function parseCanonical(raw: string): URL | undefined {
  if (raw.length > MAX_LENGTH || !PLAIN_TEXT.test(raw)) return undefined;
  if (/%(?![0-9a-f]{2})/i.test(raw)) return undefined;
  const url = URL.parse(raw);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  if (url.href !== raw && !(url.origin === raw && url.href === `${raw}/`)) return undefined;
  return isPlainPath(url.pathname) ? url : undefined;
}

/** Overlong UTF-8 and encoded control characters are refused too: some servers act on them. */
function isPlainPath(path: string): boolean {
  const decoded = AMBIGUOUS_PATH.test(path) ? undefined : decodeFormText(path);
  return decoded !== undefined && !/[\x00-\x1f\x7f]/.test(decoded);
}

function takesAnyPort(appUrl: URL): boolean {
  // RFC 8252 §8.3: not localhost, which may resolve to something else.
  const isAddress = appUrl.hostname === "127.0.0.1" || appUrl.hostname === "[::1]";
  return appUrl.protocol === "http:" && isAddress && appUrl.port === "";
}

function isReserved(pair: string, params: Readonly<Record<string, unknown>>): boolean {
  // Decoded as the app will: `%63ode` is `code`, and so are ` code`, `code[]` and `[code]` to the
  // parsers of PHP, Rails and qs, `CODE` to ASP.NET, and `a;code` to those that split at both.
  return pair.split(";").some((part) => {
    const [encoded = ""] = part.split("=");
    const decoded = (decodeFormText(encoded) ?? "").toLowerCase();
    const name = /[^\s\0[\]]+/.exec(decoded)?.[0] ?? "";
    if (name === "code" || name === "state" || name === "iss") return true;
    return name.startsWith("error") || Object.hasOwn(params, name);
  });
}

/** Percent-encodes all but the unreserved characters (RFC 3986 §2.3); a space becomes %20. */
function encodeParameter(text: string): string {
  const escape = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, escape);
}
