import { attributes, html } from "../../base/html.ts";
import { PASSWORD_BYTES } from "../../base/password.ts";
import type { GivenPassword } from "../../oauth/user.ts";
import { errorMessage, type FormPageInput, formStart, renderPage } from "./page_layout.ts";

interface PasswordPageInput extends FormPageInput {
  readonly username: string;
  readonly given: GivenPassword;
  /** Why the page is shown again. */
  readonly error?: string | undefined;
}

/** Returns the page on which a user chooses a password in place of one that the service made. */
export function passwordPage({ username, given, error, ...input }: PasswordPageInput) {
  const title = "Choose your own password";
  const main = html`<div class="steps" role="img" aria-label="Step 2 of 2"><i></i><i></i></div>
<h1>${title}</h1>
<p class="lead">${given === "printed"
    ? "You signed in with the password that was printed when the server first started."
    : html`The password that you signed in with works only once. If you leave before you
have chosen one, <code>gatepost setup</code> makes another.`}</p>
${error && errorMessage(error)}
${formStart(input)}
<div class="field">
<label for="username">Username</label>
<input id="username" autocomplete="username" readonly ${attributes({ value: username })}>
</div>
<div class="field">
<label for="new_password">New password</label>
<input id="new_password" name="new_password" type="password" autocomplete="new-password"
 aria-describedby="error help" required autofocus enterkeyhint="go"
 ${attributes({ "aria-invalid": error && "true" })}>
<p class="help" id="help">At least ${PASSWORD_BYTES.min} characters; a sentence is best. A new
password signs you out everywhere else.</p>
</div>
<div class="actions"><button class="primary" type="submit">Set password and continue</button></div>
${given === "printed" && html`<p class="account"><button class="plain" type="submit"
 name="decision" value="keep" formnovalidate>Keep the printed one</button></p>`}
</form>`;
  const shown = error ? { status: 400, title: `Not changed – ${title}` } : { status: 200, title };
  return renderPage({ ...input, ...shown, main });
}
