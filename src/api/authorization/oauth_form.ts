import { type Form, parseForm } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { described, oneOf, optional, TEXT, text } from "../../base/shape.ts";
import { readForm } from "../../http/body.ts";
import { ASSERTION_TYPE } from "../../oauth/client_assertion.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { parseScope } from "../../oauth/scope.ts";

/** A secret that somebody types or sends. */
export const SECRET = text(undefined, { format: "password" });

/** What an app may prove itself with in a form (RFC 6749 §2.3.1). */
export const CREDENTIALS = {
  client_id: optional(described("In place of the Basic header, or of a public app.", TEXT)),
  client_secret: optional(described("In place of the Basic header.", SECRET)),
  client_assertion_type: optional(oneOf(ASSERTION_TYPE)),
  client_assertion: optional(described("In place of a secret: a JWT (RFC 7523 §2.2).", SECRET)),
} as const;

/** The head of an operation that an app calls with a form and its credentials. */
export const BY_APP = {
  method: "POST",
  access: "public",
  errors: "oauth",
  refuses: [401, 429],
} as const;

/** Scopes in a response of an OAuth endpoint. */
export const SCOPE = described("Names separated by spaces.", TEXT);

/** What must never be in a query, where logs and histories keep it (RFC 6749 §2.3.1). */
const SECRET_PARAMETERS = Object.keys(CREDENTIALS)
  .concat("password code code_verifier device_code refresh_token token".split(" "));

/**
 * The form of a request to the token endpoint and its neighbours; throws OAuthError
 * `invalid_request` for anything but one well-formed form in the body, each parameter once
 * (RFC 6749 §3.2; `resource` may be repeated, RFC 8707 §2).
 */
export async function readOAuthForm(request: HttpRequest): Promise<Form> {
  const query = parseForm(request.query);
  // One that cannot be read may hold anything.
  if (!query || SECRET_PARAMETERS.some((name) => query.getAll(name).length > 0)) {
    throw new OAuthError("invalid_request", "Parameters belong in the body, not in the query.");
  }
  const form = await readForm(request);
  if (!form) throw new OAuthError("invalid_request", "The body is not a well-formed form.");
  if (form.duplicates.some((name) => name !== "resource")) {
    throw new OAuthError("invalid_request", "A parameter is repeated.");
  }
  return form;
}

/** A parameter that must be there. */
export function requireParameter(form: Form, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError("invalid_request", `Parameter ${name} is missing.`);
  return value;
}

/** The scopes asked for by name. */
export function readScope(form: Form): string[] {
  const names = parseScope(form.get("scope") ?? "");
  if (names === undefined) throw new OAuthError("invalid_scope", "The scope is not well-formed.");
  return names;
}

/** Throws `invalid_target` for a resource that is not this service (RFC 8707 §2). */
export function checkResource(form: Form, issuer: string): void {
  const isOurs = (resource: string) => resource === issuer || resource === `${issuer}/`;
  if (!form.getAll("resource").every(isOurs)) {
    throw new OAuthError("invalid_target", "Tokens are issued for this service alone.");
  }
}
