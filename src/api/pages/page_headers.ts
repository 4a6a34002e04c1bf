import { pageStyleSource } from "./page_style.ts";

/** Features that no page uses; each is refused to the page and to anything inside it. */
const REFUSED_FEATURES = [
  "camera",
  "display-capture",
  "geolocation",
  "microphone",
  "payment",
  "usb",
] as const;

// CSP3 §2.3.1: a host-part is letters, digits and "-" between dots, so an IPv6 literal has none.
const CSP_ORIGIN = /^https?:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]{1,5})?$/;

export interface PageHeadersOptions {
  /** Where the page's form may end up beside this service; without it the page has no form. */
  readonly formActionOrigin?: string;
  /** Puts Retry-After (seconds) on the answer. */
  readonly retryAfterSeconds?: number;
}

/**
 * Returns the headers of a page: CSP `default-src 'none'` with the style sheet's hash, and whatever
 * keeps the page out of caches, frames and referrers. Throws TypeError if `formActionOrigin` is not
 * a bare http or https origin.
 *
 * A page with a form has no Cross-Origin-Opener-Policy: any value would cut a popup login off from
 * the app that opened it, for good, the app's own callback page included.
 */
export function pageHeaders(options: PageHeadersOptions = {}): Readonly<Record<string, string>> {
  const { formActionOrigin, retryAfterSeconds } = options;
  const formAction =
    formActionOrigin === undefined ? "'none'" : `'self' ${formActionSource(formActionOrigin)}`;
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": [
      "default-src 'none'",
      `style-src ${pageStyleSource}`,
      "img-src 'self'", // the icon
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join("; "),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": REFUSED_FEATURES.map((feature) => `${feature}=()`).join(", "),
    ...(formActionOrigin === undefined && { "Cross-Origin-Opener-Policy": "same-origin" }),
    ...(retryAfterSeconds !== undefined && {
      "Retry-After": String(Math.max(1, Math.ceil(retryAfterSeconds))),
    }),
  };
}

/**
 * Chromium holds the redirect after a form against form-action too, so the app's origin must be in
 * it. A host that CSP cannot name (`http://[::1]:3000`) is let through by its scheme.
 */
function formActionSource(origin: string): string {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin || !/^https?:$/.test(url.protocol)) {
    throw new TypeError("formActionOrigin must be an http or https origin");
  }
  return CSP_ORIGIN.test(origin) ? origin : url.protocol;
}
