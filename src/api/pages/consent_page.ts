import type { HttpResponse } from "../../base/http_message.ts";
import { attributes, type Html, html } from "../../base/html.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import type { ScopeWords } from "../../oauth/scope.ts";
import {
  accountPanel,
  appPanel,
  errorMessage,
  type FormPageInput,
  formStart,
  renderPage,
  type ShownApp,
  tickIcon,
  warningIcon,
} from "./page_layout.ts";

/** How many scopes are shown unfolded; the rest is folded away, but never a grave scope. */
const SHOWN = 6;

export interface ConsentScope {
  readonly name: string;
  /** What the scope lets the app do, if that is known. */
  readonly words: ScopeWords | undefined;
  /** Whether the user has not allowed this app the scope before. */
  readonly isNew: boolean;
}

export interface ConsentPageInput extends FormPageInput {
  /** Who is logged in. */
  readonly username: string;
  readonly app: ShownApp;
  /** The user code of the device that asks (RFC 8628 §3.3); then no redirect follows. */
  readonly userCode?: string;
  readonly scopes: readonly ConsentScope[];
  /** Whether any program on the user's device can pose as the app (RFC 8252 §8.6). */
  readonly isImpersonable: boolean;
  /** The resource at which the app will act, if not this service. */
  readonly resource?: string | undefined;
  readonly error?: "expired";
}

/**
 * Returns the consent page: who is logged in, which app asks, and each scope in words, new ones and
 * earlier ones apart. Its form sends `decision` = `allow`, `deny` or `switch` (sign out).
 * Nothing has the focus, so that a key pressed too early allows nothing.
 */
export function consentPage(input: ConsentPageInput): HttpResponse {
  const { site, app, scopes, formActionOrigin, userCode } = input;
  const { host, hostname } = new URL(app.url);
  const isImpersonable = input.isImpersonable && userCode === undefined;
  const expired = input.error === "expired";
  // With a warning, neither button stands out.
  const warned = isImpersonable || userCode !== undefined || scopes.some(isGrave);
  const before = scopes.filter(({ isNew }) => !isNew);
  const isMixed = before.length > 0 && before.length < scopes.length;
  // The link opens another window, since the account page would cut a popup off from its app.
  const main = html`<h1>Allow this app to act for you?</h1>
${appPanel(app)}
${expired && errorMessage("This page was open for too long. Please decide once more.")}
${userCode !== undefined && html`<div class="message warning">${warningIcon}<p>Allow it only if
your own device shows <strong class="code">${userCode}</strong> now, and you began this there
yourself. Whoever sent or told you this code may be after your account.</p></div>`}
${formStart(input)}
${accountPanel(input.username)}
${input.resource && html`<p>It asks to act at <span class="wrap">${input.resource}</span>.</p>`}
${!isMixed && scopeList("scopes", "If you allow it, this app can:", scopes)}
${isMixed && [
    scopeList("new", "New: if you allow it, this app can also:", scopes.filter((s) => s.isNew)),
    scopeList("before", "You allowed before that it can:", before),
  ]}
${app.metadataUrl && html`<p>Nobody at ${site.name} has checked this app: its name is what
<span class="wrap">${host}</span> says.</p>`}
${isImpersonable && html`<div class="message warning">${warningIcon}<p>This app runs on your own
device, where any program could pose as it. Allow it only if you have just started it
yourself.</p></div>`}
<div class="actions decide">
<button type="submit" name="decision" value="allow"
 ${attributes({ class: warned ? undefined : "primary" })}>Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</div>
</form>
${!isImpersonable && userCode === undefined && isLoopbackHost(hostname) && html`<p class="note">
Development address: this app runs on your own device.</p>`}
<p class="note">The app sees your username, never your password. You can withdraw this at any time
in <a href="${site.basePath}/account" target="_blank">your account</a>.</p>
${userCode === undefined && html`<p class="note">Either way you go back to
<span class="wrap">${formActionOrigin}</span>.</p>`}`;
  const title = expired ? "This page was open for too long – Allow access?" : "Allow access?";
  return renderPage({ site, status: expired ? 400 : 200, title, main, formActionOrigin });
}

function isGrave({ words }: ConsentScope): boolean {
  return words?.grave === true;
}

function scopeList(id: string, heading: string, scopes: readonly ConsentScope[]): Html {
  // Grave scopes come first, wherever the app put them.
  const sorted = scopes.toSorted((a, b) => Number(isGrave(b)) - Number(isGrave(a)));
  const shown = Math.max(SHOWN, scopes.filter(isGrave).length);
  const folded = sorted.slice(shown);
  const list = (items: readonly ConsentScope[]) =>
    html`<ul class="scopes" role="list" aria-labelledby="${id}">${items.map(scopeItem)}</ul>`;
  return html`<h2 id="${id}">${heading}</h2>
${list(sorted.slice(0, shown))}
${folded.length > 0 && html`<details><summary>and ${folded.length} more</summary>
${list(folded)}</details>`}`;
}

function scopeItem({ name, words }: ConsentScope): Html {
  if (!words) return html`<li>${tickIcon}<span><code>${name}</code></span></li>`;
  const { description, grave } = words;
  if (!grave) {
    return html`<li>${tickIcon}<span>${description} <code class="aside">${name}</code></span></li>`;
  }
  return html`<li class="message warning">${warningIcon}<span>
<strong>Warning: ${description} <code>${name}</code></strong>
Allow this only to an app that you trust as much as yourself.</span></li>`;
}
