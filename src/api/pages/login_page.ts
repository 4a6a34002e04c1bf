import type { HttpResponse } from "../../base/http_message.ts";
import { attributes, html } from "../../base/html.ts";
import {
  appPanel,
  errorMessage,
  type FormPageInput,
  formStart,
  renderPage,
  type ShownApp,
  tickIcon,
} from "./page_layout.ts";

/** Why a login page is shown again. */
export type LoginError = "wrong" | "throttled" | "busy" | "expired";

export interface LoginPageInput extends FormPageInput {
  /** Undefined if there is a `purpose`, or for a device, whose app is not known yet. */
  readonly app: ShownApp | undefined;
  /** What the user signs in for, if not for an app: "to …". */
  readonly purpose?: string | undefined;
  /** Whether a user is logged in, but the login is too old. */
  readonly isAgain?: boolean;
  /** What was typed before; a password is never given back. */
  readonly username?: string;
  readonly error?: LoginError;
  /** For `throttled` and `busy`; at least 1. */
  readonly retryAfterSeconds?: number;
  /** Says that the former user is signed out. */
  readonly signedOut?: boolean;
  /** The user name that has the printed password, while nobody has signed in. */
  readonly firstUser?: string | undefined;
}

const REFUSALS = {
  wrong: {
    // RFC 9110 §15.5.4; a 401 would need an authentication scheme, which a form does not have.
    status: 403,
    title: "Wrong username or password",
    text: () => "This username and password do not match. Check both and try again.",
  },
  throttled: {
    status: 429,
    title: "Too many attempts",
    text: (seconds: number) =>
      `Too many sign-in attempts. Wait ${inWords(seconds)}, then try again.`,
  },
  busy: {
    status: 503,
    title: "Very busy right now",
    text: () => "This service is very busy right now. Nothing was checked. Try again in a moment.",
  },
  expired: {
    status: 400,
    title: "This page was open for too long",
    text: () => "This page was open for too long, or was used before. Please sign in again. " +
      "If that does not help, allow cookies for this site.",
  },
} satisfies Record<LoginError, unknown>;

/** Returns the login page, with the error, if there is one, in place. */
export function loginPage(input: LoginPageInput): HttpResponse {
  const { site, formActionOrigin, username = "", purpose, firstUser, retryAfterSeconds } = input;
  const refusal = input.error && REFUSALS[input.error];
  const isFirst = firstUser !== undefined;
  const field = {
    required: true,
    // Both fields alike: a mark on one would show which usernames exist.
    "aria-invalid": input.error === "wrong" ? "true" : undefined,
    "aria-describedby": refusal && "error",
  };
  const first = isFirst && { "aria-describedby": "error first" };
  const main = html`${isFirst && html`<div class="steps" role="img" aria-label="Step 1 of 2"><i></i>
<i class="ahead"></i></div>`}
<h1>Sign in${input.isAgain === true && " again"}</h1>
<p class="lead">${input.app ? "to continue to this app" : purpose ?? "to connect a device"}</p>
${input.app && appPanel(input.app)}
${input.signedOut === true && !refusal && html`<div class="message notice" role="status">
${tickIcon}<p>You are signed out here. Apps that you have allowed keep their access.</p></div>`}
${refusal && errorMessage(refusal.text(retryAfterSeconds ?? 1))}
${formStart(input)}
<div class="field">
<label for="username">Username</label>
<input id="username" name="username" type="text" autocomplete="username" autocapitalize="none"
 autocorrect="off" spellcheck="false" enterkeyhint="next"
 ${attributes({ ...field, value: username, autofocus: username === "" })}>
</div>
<div class="field">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password"
 enterkeyhint="go" ${attributes({ ...field, ...first, autofocus: username !== "" })}>
${isFirst && html`<p class="help" id="first">Nobody has signed in yet. User
<bdi>${firstUser}</bdi>'s password was printed when the server first started: in the terminal, in
<code>docker logs</code> or <code>journalctl -u gatepost</code>. Lost it? Run
<code>gatepost setup</code>.</p>`}
</div>
<div class="actions"><button class="primary" type="submit">Sign in</button></div>
</form>
${purpose === undefined && html`<p class="note">Your password stays with ${site.name}. The app never
sees it.</p>`}`;
  return renderPage({
    site,
    status: refusal?.status ?? 200,
    title: refusal ? `${refusal.title} – Sign in` : "Sign in",
    main,
    formActionOrigin,
    headers: retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) },
  });
}

/** Says a time to wait in words. */
function inWords(seconds: number): string {
  if (seconds === 1) return "a second";
  if (seconds < 60) return `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}
