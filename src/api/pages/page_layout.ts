import type { HttpResponse } from "../../base/http_message.ts";
import { type Html, html, renderHtml, styleElement } from "../../base/html.ts";
import type { App } from "../../oauth/app.ts";
import { displayText } from "./display_text.ts";
import { pageHeaders } from "./page_headers.ts";
import { PALETTE } from "./palette.ts";
import { pageStyle } from "./page_style.ts";

/** The service that the pages belong to. */
export interface Site {
  /** The name that the operator gave the service; by default its host. */
  readonly name: string;
  /** The host of the base URL, with the port if it is not the default one. */
  readonly host: string;
  /** The path of the base URL, "" where it has none. */
  readonly basePath: string;
}

/** What every page with a form is made of. */
export interface FormPageInput {
  readonly site: Site;
  /** Where the form is sent, query included. */
  readonly action: string;
  readonly csrf: string;
  /** Origin of the redirect URI; it may have a port that the app's URL leaves open. */
  readonly formActionOrigin: string;
}

/** What pages show of an app. Its name, and all that a document says, is untrusted text. */
export type ShownApp = Pick<App, "name" | "url" | "metadataUrl">;

/** Makes a page. The window's title begins with `title`; `main` is the content. */
export function renderPage({ site, status, title, main, formActionOrigin, styleHref, headers }: {
  readonly site: Site;
  readonly status: number;
  readonly title: string;
  readonly main: Html;
  /** See FormPageInput; undefined: the page has no form. */
  readonly formActionOrigin?: string;
  /** The path of another style sheet; then `main` is the whole body. */
  readonly styleHref?: string;
  readonly headers?: HttpResponse["headers"];
}): HttpResponse {
  const body = renderHtml(html`<!doctype html>
<html lang="en" dir="ltr">
<head>
${documentHead(site, title)}
${styleHref === undefined ? styleElement(pageStyle)
    : html`<link rel="stylesheet" href="${styleHref}">`}
</head>
<body>
${styleHref !== undefined ? main : html`<header>${markIcon}
<p>${site.name}${site.host !== site.name && html`<span>${site.host}</span>`}</p></header>
<main>
${main}
</main>`}
</body>
</html>
`);
  return { status, headers: { ...pageHeaders(formActionOrigin, styleHref), ...headers }, body };
}

/** Returns what every page has in its head. */
export function documentHead(site: Site, title: string): Html {
  return html`<meta charset="utf-8">
<title>${title} · ${site.name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" media="(prefers-color-scheme: light)" content="${PALETTE.page.light}">
<meta name="theme-color" media="(prefers-color-scheme: dark)" content="${PALETTE.page.dark}">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${site.basePath}/favicon.ico">`;
}

/** Shows the name of an app with its origin, since anybody can choose a name. */
export function appPanel({ name, url }: ShownApp): Html {
  const { origin } = new URL(url);
  return html`<div class="app">
${appIcon}
<p><span class="name"><bdi>${displayText(name, origin)}</bdi></span>
<span class="origin">${origin}</span></p>
</div>`;
}

/** Returns an error that is announced when the page opens; fields refer to its id, `error`. */
export function errorMessage(text: string): Html {
  return html`<div class="message error" id="error" role="alert">${alertIcon}<p>${text}</p></div>`;
}

/** Says who is logged in, with a button to sign out or switch accounts: `decision` = `switch`. */
export function accountPanel(username: string): Html {
  return html`<div class="account">
<p>Signed in as <bdi class="user">${displayText(username, "?")}</bdi></p>
<button class="plain" type="submit" name="decision" value="switch" formnovalidate>
Sign out or use another account</button>
</div>`;
}

/** Opens a form with its CSRF token; browsers must not restore an older token. */
export function formStart({ action, csrf }: Pick<FormPageInput, "action" | "csrf">): Html {
  return html`<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}" autocomplete="off">`;
}

const mark = html`<path fill="currentColor" d="M2 7 5 3l3 4v18H2zM20 7l3-4 3 4v18h-6z"/>
<path fill="none" stroke="currentColor" stroke-width="2.5" d="M8 11.5h12m0 9H8l12-9"/>`;

/** The mark, before the name of the service. */
export const markIcon =
  html`<svg width="28" height="28" viewBox="0 0 28 28" aria-hidden="true">${mark}</svg>`;

/** The mark as an image of its own: on a tile, since a browser's tabs may be light or dark. */
export const markImage = renderHtml(html`<svg xmlns="http://www.w3.org/2000/svg"
 viewBox="-5 -5 38 38" color="${PALETTE.onAccent.light}">
<rect x="-5" y="-5" width="38" height="38" rx="8" fill="${PALETTE.accent.light}"/>${mark}</svg>`);

/** A drawing in lines, in the colour of the text around it. */
export function icon(lineWidth: string, lines: Html): Html {
  return html`<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" fill="none"
 stroke="currentColor" stroke-width="${lineWidth}" stroke-linecap="round"
 stroke-linejoin="round">${lines}</svg>`;
}

const appIcon = icon("1.5", html`<rect x="2" y="3" width="16" height="14" rx="2.5"/>
<path d="M2 7.5h16M5 5.25h.01M7.5 5.25h.01"/>`);

const alertIcon = icon("1.6", html`<circle cx="10" cy="10" r="8"/>
<path d="M10 5.75v5M10 14h.01"/>`);

/** A triangle with an exclamation mark, for what deserves a second look. */
export const warningIcon = icon("1.6", html`<path d="M10 2.5 18.5 17h-17zM10 8v4M10 14.5h.01"/>`);

/** A tick, for what is allowed or done. */
export const tickIcon = icon("1.8", html`<path d="m4 10.5 4 4 8-9"/>`);
