import type { Form } from "../../base/form.ts";
import type { HttpResponse } from "../../base/http_message.ts";
import { attributes, type Html, html, type HtmlValue } from "../../base/html.ts";
import { idTimeMs } from "../../base/id.ts";
import { PASSWORD_BYTES } from "../../base/password.ts";
import { PERSONAL_APP } from "../../oauth/principal.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import type { ScopeWords } from "../../oauth/scope.ts";
import type { Session } from "../../oauth/user.ts";
import type { ActingApp } from "../../store/consents.ts";
import type { ListedGrant } from "../../store/grants.ts";
import { type AccountFrame, renderAccountPage } from "./account_layout.ts";
import { browserInWords, dayInWords, spanInWords } from "./account_words.ts";
import { displayText } from "./display_text.ts";

const PASSWORD_ENDS = "A new password signs you out in every other browser and ends every token: " +
  "those of apps, and your personal ones. Webhooks that you made yourself stay.";

/** The page of an account: apps, browsers, personal tokens, password. */
export function accountPage(frame: AccountFrame, shown: {
  readonly apps: readonly ActingApp[];
  /** The grants of those apps, and the user's personal tokens. */
  readonly grants: readonly ListedGrant[];
  readonly sessions: readonly Session[];
  readonly scopeWords: ReadonlyMap<string, ScopeWords>;
  readonly nowMs: number;
}): HttpResponse {
  const { grants, scopeWords, nowMs } = shown;
  const scopesOf = ({ scopes }: Pick<ActingApp, "scopes">) => html`<p class="small">
${scopes.map((scope) => scopeWords.get(scope)?.description ?? scope).join(" · ")}</p>`;
  const historyOf = (own: readonly ListedGrant[]) => {
    const usedMs = Math.max(...own.map(({ lastUsedAtMs }) => lastUsedAtMs ?? 0));
    const used = usedMs > 0 ? `used ${spanInWords(nowMs - usedMs)} ago` : "not used yet";
    return `${dayInWords(Math.min(...own.map(({ id }) => idTimeMs(id))))} · ${used}`;
  };

  const apps = shown.apps.map((app) => {
    const { origin, hostname } = new URL(app.url);
    const own = grants.filter((grant) => grant.app === app.id);
    const name = displayText(app.name, origin);
    return html`<li class="hook">
<span class="face hide-s" aria-hidden="true">${[...name][0]?.toUpperCase()}</span>
<div class="g"><p><b><bdi>${name}</bdi></b></p><span class="sub muted small">${origin}
${isLoopbackHost(hostname) && " — runs on your device"}</span>${scopesOf(app)}
<p class="small muted">${own.length > 0 ? `Allowed ${historyOf(own)}` : "Has no token now"}</p>
</div>
<a class="btn tiny danger" href="?app=${app.id}">Withdraw…${hidden(name)}</a></li>`;
  });
  const isElsewhere = ({ id }: Session) => Number(id !== frame.session);
  const hereFirst = shown.sessions.toSorted((a, b) => isElsewhere(a) - isElsewhere(b));
  const sessions = hereFirst.map(({ id, address, agent, createdAtMs, untilMs }) => {
    const browser = browserInWords(agent);
    const isHere = id === frame.session;
    return html`<li><div class="g"><b>${browser}</b>
${isHere && html`<span class="pill ok">this browser</span>`}
<p class="small muted">${address && `${address} · `}signed in
${spanInWords(nowMs - createdAtMs)} ago
${!isHere && html`· ends in ${spanInWords(untilMs - nowMs)}`}</p></div>
${!isHere && actButton(`session ${id}`, html`Sign out${hidden(browser)}`)}</li>`;
  });
  const tokens = grants.filter(({ app }) => app === PERSONAL_APP).map((token) => {
    const name = displayText(token.name ?? "", token.id);
    return html`<li><div class="g"><p><b><bdi>${name}</bdi></b></p>${scopesOf(token)}
<p class="small muted">Made ${historyOf([token])} ·
ends ${dayInWords(token.accessUntilMs)}</p></div>
${actButton(`token ${token.id}`, html`End${hidden(name)}`, "tiny danger")}</li>`;
  });
  const signOut = sessions.length > 1 &&
    actButton(`sessions ${frame.session}`, "Sign out everywhere else");
  const make = html`<a class="btn tiny" href="?do=make">New…${hidden("token")}</a>`;
  const change = html`<a class="btn tiny" href="?do=password">Change…${hidden("password")}</a>`;
  const main = html`${card("Apps that may act for you", null, apps, "No app may.")}
${card("Where you are signed in", signOut, sessions)}
${card("Personal tokens", make, tokens, "None. With one, a script of yours can act for you.")}
${card("Password", change, [], PASSWORD_ENDS)}`;
  const lead = "Which apps may act for you, where you are signed in, your tokens and password.";
  return renderAccountPage(frame, "Your account", lead, main);
}

/** Asks the user to confirm the withdrawal of an app that has this number of subscriptions. */
export function withdrawPage(frame: AccountFrame, app: ActingApp, subscriptions: number) {
  const { origin } = new URL(app.url);
  const stop = subscriptions === 1 ? "subscription stops" : `${subscriptions} subscriptions stop`;
  const main = html`<dl class="facts field">
<dt>App</dt><dd><b><bdi>${displayText(app.name, origin)}</bdi></b></dd><dt>At</dt><dd>${origin}</dd>
<dt>Then</dt><dd>Its tokens end${subscriptions > 0 && ` and its ${stop}`}. Before it may act for you
again, you are asked anew.</dd></dl>`;
  const button = actButton(`withdraw ${app.id}`, "Withdraw", "danger");
  return askPage(frame, "Withdraw this app?", "Its access ends at once.", main, button);
}

/** Asks for the current password and a new one. */
export function passwordPage(frame: AccountFrame): HttpResponse {
  const input = (name: string, label: string, autocomplete: string) =>
    field(frame, name, label, { type: "password", autocomplete });
  return askPage(frame, "Change your password", PASSWORD_ENDS, html`
<input name="username" value="${frame.username}" autocomplete="username" hidden>
${input("current", "Current password", "current-password")}
${input("new", "New password", "new-password")}
<p class="small muted">At least ${PASSWORD_BYTES.min} characters; a sentence is best.</p>`,
  actButton("password", "Change password", "primary"));
}

/** Asks for the name, scopes and lifetime of a personal token; `sent` is a form to show again. */
export function tokenPage(
  frame: AccountFrame,
  scopes: readonly string[],
  scopeWords: ReadonlyMap<string, ScopeWords>,
  sent?: Form,
): HttpResponse {
  const ticked = (name: string) => attributes({ checked: sent?.get(name) !== undefined });
  const chosen = sent?.get("days") ?? "30";
  const lead = "Whoever has the token can do for you what you choose here.";
  return askPage(frame, "New personal token", lead, html`
${field(frame, "name", "Name", { maxlength: 100, autocomplete: "off", value: sent?.get("name") })}
<div class="field" role="group" aria-labelledby="may"><h2 id="may">What it may do</h2></div>
${scopes.map((name) => html`<label class="pick">
<input type="checkbox" name="scope ${name}" value="on" ${ticked(`scope ${name}`)}>
<span><b>${name}</b>
${scopeWords.get(name)?.grave === true && html`<span class="pill warn">Warning</span>`}
${scopeWords.get(name)?.description}</span></label>`)}
<div class="field"><label for="days">How long</label><select id="days" name="days">
${[7, 30, 90, 365].map((days) => html`<option value="${days}" ${attributes({
    selected: String(days) === chosen,
  })}>${days} days</option>`)}</select></div>`,
  actButton("make", "Make token", "primary"));
}

/** Shows a new token, which is never shown again. */
export function madeTokenPage(frame: AccountFrame, name: string, token: string): HttpResponse {
  const lead = "Copy it now: it is shown only once.";
  const item = html`<li><div class="g"><p><b><bdi>${displayText(name, "?")}</bdi></b></p>
<code class="sub">${token}</code></div></li>`;
  const done = html`<a class="btn tiny" href="?">Done</a>`;
  return renderAccountPage(frame, "Your new token", lead, card("Token", done, [item]));
}

/** Makes a page for one act, with a way back. */
function askPage(frame: AccountFrame, title: string, lead: string, fields: Html, button: Html) {
  return renderAccountPage(frame, title, lead, html`<section class="card"><div class="body">
${fields}<div class="field row">${button}<a class="btn" href="?">Cancel</a></div></div></section>`);
}

/** A card with a list, or with words where it is empty. */
function card(title: string, act: HtmlValue, items: readonly Html[], empty = ""): Html {
  return html`<section class="card"><header><h2>${title}</h2>${act}</header>
${items.length > 0 ? html`<ul class="list" role="list">${items}</ul>`
    : html`<div class="body"><p class="small muted">${empty}</p></div>`}</section>`;
}

function field(
  { message }: AccountFrame,
  name: string,
  label: string,
  more: Parameters<typeof attributes>[0],
): Html {
  const all = { id: name, name, required: true, "aria-describedby": message && "error", ...more };
  return html`<div class="field"><label for="${name}">${label}</label>
<input ${attributes(all)}></div>`;
}

function actButton(act: string, words: HtmlValue, kind = "tiny"): Html {
  return html`<button class="btn ${kind}" name="do" value="${act}">${words}</button>`;
}

/** Makes hidden text that tells buttons apart in a screen reader. */
function hidden(name: string): Html {
  return html`<span class="sr"> ${name}</span>`;
}
