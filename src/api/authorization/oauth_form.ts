import { type Form, parseForm } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { described, oneOf, optional, shown, TEXT, text } from "../../base/shape.ts";
import { readForm } from "../../http/body.ts";
import { ASSERTION_TYPE } from "../../oauth/client_assertion.ts";
import { invalidRequest, OAuthError } from "../../oauth/errors.ts";
import { parseAppUrl } from "../../oauth/redirect_uri.ts";
import { isOwnResource, type Resource } from "../../oauth/resource.ts";
import { parseScope } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { findResource } from "../../store/resources.ts";

/** A secret that somebody types or sends. */
export const SECRET = text(undefined, { format: "password" });

/** The parameters with which an app may authenticate in a form (RFC 6749 §2.3.1). */
export const CREDENTIALS = {
  client_id: optional(described("Instead of the Basic header, or alone for a public app.", TEXT)),
  client_secret: optional(described("Instead of the Basic header.", SECRET)),
  client_assertion_type: optional(oneOf(ASSERTION_TYPE)),
  client_assertion: optional(described("Instead of a secret: a JWT (RFC 7523 §2.2).", SECRET)),
} as const;

/** Members of the responses of OAuth endpoints. */
export const SCOPE = described("Names separated by spaces.", TEXT);
export const TOKEN_TYPE = shown({ const: "bearer" });
export const SECONDS = described("Seconds.", shown({ type: "integer", minimum: 1 }));

/** Parameters that must never be in a query, which logs and histories keep (RFC 6749 §2.3.1). */
const SECRET_PARAMETERS = Object.keys(CREDENTIALS)
  .concat("password code code_verifier device_code refresh_token token".split(" "));

/**
 * Reads the form of a request to the token endpoint or a similar one. Throws OAuthError
 * `invalid_request` unless the body is a well-formed form that has each parameter once.
 */
export async function readOAuthForm(request: HttpRequest): Promise<Form> {
  checkQuery(request);
  const form = await readForm(request);
  if (!form) throw invalidRequest("The body is not a well-formed form.");
  checkRepeated(form);
  return form;
}

/** Throws if a parameter but `resource` (RFC 8707) is repeated (RFC 6749 §3.1, §3.2). */
export function checkRepeated({ duplicates }: Form): void {
  if (duplicates.every((name) => name === "resource")) return;
  throw invalidRequest("A parameter is repeated.");
}

/** Throws if a query may contain a secret; a malformed query may contain anything. */
export function checkQuery(request: HttpRequest): void {
  if (request.query === "") return;
  const query = parseForm(request.query);
  if (query && !SECRET_PARAMETERS.some((name) => query.getAll(name).length > 0)) return;
  throw invalidRequest("Parameters belong in the body, not in the query.");
}

/** Returns a parameter; throws OAuthError `invalid_request` if it is absent, empty or repeated. */
export function requireParameter(form: Form, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw invalidRequest(`Parameter ${name} is missing.`);
  return value;
}

/** Returns the names in `scope` (RFC 6749 §3.3), or none; throws OAuthError `invalid_scope`. */
export function readScope(form: Form): string[] {
  const names = parseScope(form.get("scope") ?? "");
  if (names === undefined) throw new OAuthError("invalid_scope", "The scope is not well-formed.");
  return names;
}

/**
 * Returns the registered resource that a form names, null for this service, undefined for none.
 * Throws `invalid_target` for any other, and for several: a token is for one (RFC 8707 §2).
 */
export async function readResource(
  form: Form,
  { database, issuer }: Pick<Services, "database" | "issuer">,
): Promise<Resource | null | undefined> {
  const named = form.getAll("resource");
  const [other, ...more] = new Set(named.map((url) => isOwnResource(url, issuer) ? null : url));
  const isOne = more.length === 0;
  if (isOne && typeof other !== "string") return other;
  const resource = isOne && other && parseAppUrl(other) && await findResource(database, other);
  if (resource) return resource;
  const detail = "A token is for one resource: this service, or one that is registered here.";
  throw new OAuthError("invalid_target", detail);
}

/** Throws OAuthError `invalid_target` if the form of a device names a registered resource. */
export async function checkOwnResource(...asked: Parameters<typeof readResource>): Promise<void> {
  if (!await readResource(...asked)) return;
  throw new OAuthError("invalid_target", "Tokens of devices are for this service alone.");
}
