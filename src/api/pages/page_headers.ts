import { pageStyleSource } from "./page_style.ts";

// CSP3 §2.3.1: a host-part is letters, digits and "-" between dots, so an IPv6 literal has none.
const CSP_ORIGIN = /^https?:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]{1,5})?$/;

const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/; // RFC 8252 §7.1

/**
 * Returns the headers of a page: CSP `default-src 'none'` with the style sheet's hash, and whatever
 * keeps the page out of caches, frames and referrers. Throws TypeError if `formActionOrigin` is not
 * a bare http or https origin, or a private-use scheme.
 *
 * A page with a form has no Cross-Origin-Opener-Policy: any value would permanently cut a popup
 * login off from the app that opened it, even on the app's own callback page.
 *
 * @param formActionOrigin another origin to which a form may lead; undefined: no form
 * @param styleHref the path of another style sheet; `formActionOrigin` is then this service
 */
export function pageHeaders(
  formActionOrigin?: string,
  styleHref?: string,
): Readonly<Record<string, string>> {
  // Another style sheet is allowed by its exact path, or by 'self' if CSP cannot name the host.
  const styleSource = styleHref === undefined ? pageStyleSource
    : CSP_ORIGIN.test(formActionOrigin ?? "") ? `${formActionOrigin}${styleHref}` : "'self'";
  const formAction =
    formActionOrigin === undefined ? "'none'" : `'self' ${formActionSource(formActionOrigin)}`;
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": [
      "default-src 'none'",
      `style-src ${styleSource}`,
      "img-src 'self'", // the icon
      `form-action ${formAction}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join("; "),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": // features that no page uses
      "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ...(formActionOrigin === undefined && { "Cross-Origin-Opener-Policy": "same-origin" }),
  };
}

/**
 * Chromium and WebKit apply form-action to the redirect after a form too, so the app's origin must
 * be in it. For a host that CSP cannot name (`http://[::1]:3000`) its scheme is allowed.
 */
function formActionSource(origin: string): string {
  if (PRIVATE_SCHEME.test(origin)) return origin;
  const url = URL.parse(origin);
  if (url?.origin !== origin || !/^https?:$/.test(url.protocol)) {
    throw new TypeError("formActionOrigin must be an http or https origin");
  }
  return CSP_ORIGIN.test(origin) ? origin : url.protocol;
}
