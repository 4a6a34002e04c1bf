import type { HttpAnswer } from "../../base/exchange.ts";
import { newId } from "../../base/id.ts";
import type { OAuthError } from "../../oauth/errors.ts";
import { redirectWith } from "../../oauth/redirect_uri.ts";
import type { User } from "../../oauth/user.ts";
import { insertCode } from "../../store/codes.ts";
import type { Database, Statement } from "../../store/database.ts";
import { emptyAnswer, NO_STORE } from "../respond.ts";
import type { AuthorizeRequest } from "./authorize_request.ts";
import { newHandle } from "./token_issuer.ts";

/** What the way back to the app works with. */
export interface RedirectOptions {
  readonly database: Database;
  readonly issuer: string;
  readonly codeTtlMs: number;
  readonly now: () => number;
}

/** Stores a code, with what else belongs to the decision, and sends it to the app. */
export async function sendCode(
  { app, redirectUri, challenge, state }: AuthorizeRequest,
  user: User,
  scopes: readonly string[],
  decision: readonly Statement[],
  { database, issuer, codeTtlMs, now }: RedirectOptions,
): Promise<HttpAnswer> {
  const nowMs = now();
  const id = newId("g", nowMs);
  const { token: code, hash } = newHandle(id);
  await database.write([
    ...decision,
    insertCode({
      id,
      app: app.id,
      user: user.id,
      scopes,
      redirectUri,
      challenge: challenge ?? null,
      untilMs: nowMs + codeTtlMs,
    }, hash),
  ]);
  return seeOther(redirectWith(redirectUri, { code, state, iss: issuer }));
}

/** Tells the app, at its redirect URI, why it gets no code (RFC 6749 §4.1.2.1). */
export function errorRedirect(
  { redirectUri, state }: { readonly redirectUri: string; readonly state: string | undefined },
  { error, description }: OAuthError,
  issuer: string,
): HttpAnswer {
  const parameters = { error, error_description: description, state, iss: issuer };
  return seeOther(redirectWith(redirectUri, parameters));
}

/** RFC 9700 §4.12: 303, so that no browser sends the form on. */
export function seeOther(location: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  return emptyAnswer(303, {
    Location: location,
    "Referrer-Policy": "no-referrer",
    ...NO_STORE,
    ...headers,
  });
}
