import type { HttpResponse } from "../../base/http_message.ts";
import { attributes, html } from "../../base/html.ts";
import type { Problem } from "../../base/problem.ts";
import {
  accountPanel,
  errorMessage,
  type FormPageInput,
  formStart,
  renderPage,
  type Site,
} from "./page_layout.ts";

export interface VerifyPageInput extends FormPageInput {
  readonly username: string;
  /** The code as typed, or as it came in the URL; the user must still confirm it. */
  readonly userCode: string;
  /** Why the page is shown again. */
  readonly error?: Pick<Problem, "status" | "message"> & Pick<HttpResponse, "headers"> | undefined;
}

/** Returns the page on which a user types the code that a device shows (RFC 8628 §3.3). */
export function verifyPage({ userCode, error, username, ...input }: VerifyPageInput): HttpResponse {
  const title = "Connect a device";
  const main = html`<h1>${title}</h1>
<p class="lead">${userCode === "" || error ? "Type the code that your device shows."
    : "Continue only if your own device shows this code now."}</p>
${error && errorMessage(error.message)}
${formStart(input)}
<div class="field">
<label for="user_code">Code</label>
<input id="user_code" class="code" name="user_code" type="text" autocomplete="off"
 autocapitalize="characters" autocorrect="off" spellcheck="false" enterkeyhint="go" required
 ${attributes({ value: userCode, autofocus: true, "aria-describedby": error && "error" })}>
</div>
<div class="actions"><button class="primary" type="submit">Continue</button></div>
${accountPanel(username)}
</form>
<p class="note">Never type a code that somebody sent you or told you.</p>`;
  return renderPage({
    ...input,
    status: error?.status ?? 200,
    title: error ? `Not connected – ${title}` : title,
    main,
    headers: error?.headers ?? {},
  });
}

/** Returns the page after the decision. */
export function verifiedPage(site: Site, isAllowed: boolean): HttpResponse {
  const title = isAllowed ? "Device connected" : "Device not connected";
  const main = html`<h1>${title}</h1>
<p class="words" role="status">${isAllowed ? "Continue on your device; this may take some seconds."
    : "You denied it: the device gets no access."} You can close this page.</p>`;
  return renderPage({ site, status: 200, title, main });
}
