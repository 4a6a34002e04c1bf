import type { HttpAnswer } from "../../base/exchange.ts";
import { attributes, type Html, html } from "../../base/html.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import { displayText } from "./display_text.ts";
import { pageHeaders } from "./page_headers.ts";
import {
  appPanel,
  csrfField,
  errorMessage,
  type PageApp,
  pageLayout,
  type Site,
  tickIcon,
  warningIcon,
} from "./page_layout.ts";

export interface ConsentPageInput {
  readonly site: Site;
  /** Where the form is sent, query included. */
  readonly action: string;
  readonly csrf: string;
  readonly app: PageApp;
  /** Origin of the redirect URI; it may have a port that the app's URL leaves open. */
  readonly formActionOrigin: string;
  /** Who is logged in. */
  readonly username: string;
  readonly scopes: readonly string[];
  readonly error?: "expired";
}

/**
 * Returns the consent page: who is logged in, which app asks, and each scope in words. Its form
 * sends `decision` = `allow`, `deny` or `switch` (sign out). Nothing has the focus, so that a
 * key pressed too early allows nothing.
 */
export function consentPage(input: ConsentPageInput): HttpAnswer {
  const { site } = input;
  const expired = input.error === "expired";
  // What deserves a second look comes first, wherever the app put it.
  const scopes = input.scopes.toSorted((a, b) => Number(isGrave(b)) - Number(isGrave(a)));
  // Then neither answer is the louder one.
  const grave = scopes.some(isGrave);
  const main = html`<h1>Allow this app to act for you?</h1>
${appPanel(input.app)}
${expired && errorMessage("This page was open for too long. Please decide once more.")}
<form method="post" action="${input.action}">
${csrfField(input.csrf)}
<div class="account">
<p>Signed in as <bdi class="user">${displayText(input.username, "?")}</bdi></p>
<button class="plain" type="submit" name="decision" value="switch">
Sign out or use another account</button>
</div>
<h2 id="scopes">If you allow it, this app can:</h2>
<ul class="scopes" role="list" aria-labelledby="scopes">
${scopes.map((scope) => scopeItem(scope))}
</ul>
${isLoopbackHost(new URL(input.app.origin).hostname) && loopbackNote}
<div class="actions">
<button type="submit" name="decision" value="allow"
 ${attributes({ class: grave ? undefined : "primary" })}>Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</div>
</form>
<p class="note">The app sees your username, never your password. To withdraw this permission later,
ask the people who run ${site.name}.</p>
<p class="note">Either way you go back to <span class="wrap">${input.formActionOrigin}</span>.</p>`;
  const title = "Allow access?";
  return {
    status: expired ? 400 : 200,
    headers: pageHeaders({ formActionOrigin: input.formActionOrigin }),
    body: pageLayout(expired ? `This page was open for too long – ${title}` : title, main, site),
  };
}

function isGrave(scope: string): boolean {
  return scope === "backend";
}

function scopeItem(scope: string): Html {
  if (isGrave(scope)) {
    return html`<li class="message warning">${warningIcon}<span>
<strong>Warning: administer this whole service</strong>
Every app, user, key and event, not only yours. Allow this only to an app that you trust as much
as yourself.</span></li>`;
  }
  const words = scope === "consumer"
    ? html`Subscribe to events and manage your subscriptions on your behalf`
    : html`<code>${scope}</code>`;
  return html`<li>${tickIcon}<span>${words}</span></li>`;
}

// RFC 8252 §8.6: any program on the device can pose as such an app.
const loopbackNote = html`<div class="message warning">${warningIcon}<p>This app runs on your own
device, where any program could pose as it. Allow it only if you have just started it
yourself.</p></div>`;
