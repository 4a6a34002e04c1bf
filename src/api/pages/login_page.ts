import type { HttpResponse } from "../../base/http_message.ts";
import { attributes, html } from "../../base/html.ts";
import { pageHeaders } from "./page_headers.ts";
import { appPanel, csrfField, errorMessage, type FormPageInput } from "./page_layout.ts";
import { noticeMessage, pageLayout } from "./page_layout.ts";

/** Why a login page is shown again. */
export type LoginError = "wrong" | "throttled" | "busy" | "expired";

export interface LoginPageInput extends FormPageInput {
  /** What was typed before; a password is never given back. */
  readonly username?: string;
  readonly error?: LoginError;
  /** For `throttled` and `busy`. */
  readonly retryAfterSeconds?: number;
  /** Says that the former user is signed out. */
  readonly signedOut?: boolean;
}

interface Refusal {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  readonly retryAfterSeconds?: number;
}

/** Returns the login page, with the error, if there is one, in place. */
export function loginPage(input: LoginPageInput): HttpResponse {
  const refusal = input.error && refusalOf(input.error, input.retryAfterSeconds);
  const username = input.username ?? "";
  const field = {
    required: true,
    // Username and password are not told apart: that would tell which usernames exist.
    "aria-invalid": input.error === "wrong" ? "true" : undefined,
    "aria-describedby": refusal && "error",
  };
  const main = html`<h1>Sign in</h1>
<p class="lead">to continue to this app</p>
${appPanel(input.app)}
${input.signedOut === true && !refusal && noticeMessage(SIGNED_OUT)}
${refusal && errorMessage(refusal.text)}
<form method="post" action="${input.action}">
${csrfField(input.csrf)}
<div class="field">
<label for="username">Username</label>
<input id="username" name="username" type="text" autocomplete="username" autocapitalize="none"
 autocorrect="off" spellcheck="false" enterkeyhint="next"
 ${attributes({ ...field, value: username, autofocus: username === "" })}>
</div>
<div class="field">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password"
 enterkeyhint="go" ${attributes({ ...field, autofocus: username !== "" })}>
</div>
<div class="actions"><button class="primary" type="submit">Sign in</button></div>
</form>
<p class="note">Your password stays with ${input.site.name}. The app never sees it.</p>`;
  return {
    status: refusal?.status ?? 200,
    headers: pageHeaders({
      formActionOrigin: input.formActionOrigin,
      ...(refusal?.retryAfterSeconds !== undefined && {
        retryAfterSeconds: refusal.retryAfterSeconds,
      }),
    }),
    body: pageLayout(refusal ? `${refusal.title} – Sign in` : "Sign in", main, input.site),
  };
}

const SIGNED_OUT = "You are signed out here. Apps that you have allowed keep their access.";

function refusalOf(error: LoginError, retryAfterSeconds: number | undefined): Refusal {
  switch (error) {
    case "wrong":
      return {
        // RFC 9110 §15.5.4; a 401 would owe an authentication scheme that a form does not have.
        status: 403,
        title: "Wrong username or password",
        text: "This username and password do not match. Check both and try again.",
      };
    case "throttled": {
      const seconds = retryAfterSeconds ?? 300;
      return {
        status: 429,
        title: "Too many attempts",
        text: `Too many sign-in attempts. Wait ${inWords(seconds)}, then try again.`,
        retryAfterSeconds: seconds,
      };
    }
    case "busy":
      return {
        status: 503,
        title: "Very busy right now",
        text: "This service is very busy right now. Nothing was checked. Try again in a moment.",
        retryAfterSeconds: retryAfterSeconds ?? 5,
      };
    case "expired":
      return {
        status: 400,
        title: "This page was open for too long",
        text: "This page was open for too long, or was used before. Please sign in again.",
      };
  }
}

function inWords(seconds: number): string {
  if (seconds <= 1) return "a second";
  if (seconds < 60) return `${Math.ceil(seconds)} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}
