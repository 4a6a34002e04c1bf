import { type Html, html, renderHtml, styleElement } from "../../base/html.ts";
import { displayText } from "./display_text.ts";
import { darkPalette, lightPalette } from "./palette.ts";
import { pageStyle } from "./page_style.ts";

/** Whose service the pages speak for. */
export interface Site {
  /** What the operator calls it; the host where it has no other name. */
  readonly name: string;
  /** Host, and port where it is not the usual one, of the base URL. */
  readonly host: string;
  /** The path of the base URL, "" where it has none. */
  readonly basePath: string;
}

/** The app that a page is about; its name is untrusted text. */
export interface PageApp {
  readonly name: string;
  /** Where the user will be sent, e.g. "https://shop.example". */
  readonly origin: string;
}

/** What every page with a form is made of. */
export interface FormPageInput {
  readonly site: Site;
  /** Where the form is sent, query included. */
  readonly action: string;
  readonly csrf: string;
  readonly app: PageApp;
  /** Origin of the redirect URI; it may have a port that the app's URL leaves open. */
  readonly formActionOrigin: string;
}

/**
 * Returns a whole document as text. `title` goes first in the window's title, `main` is what the
 * page says; neither page frame nor style depend on the request.
 */
export function pageLayout(title: string, main: Html, site: Site): string {
  return renderHtml(html`<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<title>${title} · ${site.name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" media="(prefers-color-scheme: light)" content="${lightPalette.page}">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="${darkPalette.page}">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${site.basePath}/favicon.ico">
${styleElement(pageStyle)}
</head>
<body>
<header><svg width="28" height="28" viewBox="0 0 28 28" aria-hidden="true">${mark}</svg>
<p>${site.name}${site.host !== site.name && html`<span>${site.host}</span>`}</p></header>
<main>
${main}
</main>
</body>
</html>
`);
}

/** Returns the panel that names an app and its origin. */
export function appPanel(app: PageApp): Html {
  return html`<div class="app">
${appIcon}
<p><span class="name"><bdi>${displayText(app.name, app.origin)}</bdi></span>
<span class="origin">${app.origin}</span></p>
</div>`;
}

/** Returns an error that is announced when the page opens; fields refer to its id, `error`. */
export function errorMessage(text: string): Html {
  return html`<div class="message error" id="error" role="alert">${alertIcon}<p>${text}</p></div>`;
}

/** Returns a quiet confirmation. */
export function noticeMessage(text: string): Html {
  return html`<div class="message notice" role="status">${tickIcon}<p>${text}</p></div>`;
}

/** Returns the hidden field that carries the CSRF token; browsers must not restore an older one. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}" autocomplete="off">`;
}

const mark = html`<path fill="currentColor" d="M2 7 5 3l3 4v18H2zM20 7l3-4 3 4v18h-6z"/>
<path fill="none" stroke="currentColor" stroke-width="2.5" d="M8 11.5h12m0 9H8l12-9"/>`;

/** The mark as an image of its own: on a tile, since a browser's tabs may be light or dark. */
export const markImage = renderHtml(html`<svg xmlns="http://www.w3.org/2000/svg"
 viewBox="-5 -5 38 38" color="${lightPalette.onAccent}">
<rect x="-5" y="-5" width="38" height="38" rx="8" fill="${lightPalette.accent}"/>${mark}</svg>`);

const appIcon = html`<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"
 fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round">
<rect x="2" y="3" width="16" height="14" rx="2.5"/><path d="M2 7.5h16M5 5.25h.01M7.5 5.25h.01"
 stroke-linecap="round"/></svg>`;

const alertIcon = html`<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"
 fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round">
<circle cx="10" cy="10" r="8"/><path d="M10 5.75v5M10 14h.01"/></svg>`;

/** A triangle with an exclamation mark, for what deserves a second look. */
export const warningIcon = html`<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"
 fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"
 stroke-linejoin="round"><path d="M10 2.5 18.5 17h-17zM10 8v4M10 14.5h.01"/></svg>`;

/** A tick, for what is allowed or done. */
export const tickIcon = html`<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"
 fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"
 stroke-linejoin="round"><path d="m4 10.5 4 4 8-9"/></svg>`;
