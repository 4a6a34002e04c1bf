import { attributes, type Html, html } from "../../base/html.ts";
import { displayText } from "./display_text.ts";
import { type FormPageInput, formStart, markIcon, renderPage } from "./page_layout.ts";

/** The frame of every account page; the forms of a page are sent to the page itself. */
export interface AccountFrame extends FormPageInput {
  /** The path of the console's style sheet, which these pages share. */
  readonly styleHref: string;
  readonly username: string;
  /** The id of this browser's session. */
  readonly session: string;
  /** Whether there is a console, and the user may open it. */
  readonly hasConsole: boolean;
  /** What has been done, or why nothing was done. */
  readonly message: string | undefined;
  /** The HTTP status: that of the error if nothing was done. */
  readonly status: number;
}

/** Makes a page of a user's account, without script; `main` is the content of a form. */
export function renderAccountPage(frame: AccountFrame, title: string, lead: string, main: Html) {
  const { site, formActionOrigin, styleHref, status, message } = frame;
  const isError = status >= 400;
  const kind = isError ? { class: "msg bad", role: "alert" } : { class: "msg ok", role: "status" };
  const body = html`<a class="skip" href="#main">Skip to content</a>
<header class="bar">
<a class="brand" href="${site.basePath}/account">${markIcon}<b>${site.name}</b></a>
<nav aria-label="Account"><a href="${site.basePath}/account" aria-current="page">Your account</a>
<a href="${site.basePath}/account/webhooks">Your webhooks</a>
${frame.hasConsole && html`<a href="${site.basePath}/console">Console</a>`}</nav>
${formStart(frame)}<div class="row">
<span class="muted small"><bdi>${displayText(frame.username, "?")}</bdi></span>
<button class="btn tiny" name="do" value="session ${frame.session}">Sign out</button></div></form>
</header>
<main id="main" tabindex="-1" class="narrow">
<div class="head"><div><h1>${title}</h1><p>${lead}</p></div></div>
${message && html`<div id="error" ${attributes(kind)}><div>${message}</div></div>`}
${formStart(frame)}
${main}
</form></main>`;
  const named = isError ? `Not done – ${title}` : title;
  return renderPage({ site, status, title: named, main: body, formActionOrigin, styleHref });
}
