import { decodeFormText, type Form } from "../base/form.ts";
import { parseJwt, type UnprovenJwt } from "../base/jwt.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { ASSERTION_RULE, ASSERTION_TYPE } from "./client_assertion.ts";
import { invalidRequest, OAuthError } from "./errors.ts";

/** The credentials that a request presents for its app, not verified yet. */
interface ClientCredentials {
  readonly clientId: string;
  /** The readings of the secret that was sent, the form-decoded first; none for a public app. */
  readonly secrets: readonly string[];
  /** Sent instead of a secret. */
  readonly assertion?: UnprovenJwt;
}

/** RFC 7617 §2, RFC 9110 §11.4: the scheme in any case, spaces, padded base64 and nothing more. */
const BASIC = /^basic +((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/i;

/**
 * Returns the client credentials of a request: an assertion (RFC 7523 §2.2), HTTP Basic or the body
 * (RFC 6749 §2.3.1), or `client_id` alone (§3.2.1). Basic with an empty password is `client_id`
 * alone too.
 *
 * @param form without repetitions
 * @throws {OAuthError} `invalid_request` (400) if credentials are sent in two ways (§2.3) or name
 * two apps; `invalid_client` (401) if Basic is malformed, another scheme is used, or no app is
 * named.
 */
export function parseClientAuth(authorization: string | undefined, form: Form): ClientCredentials {
  const bodyId = form.get("client_id");
  const bodySecret = form.get("client_secret");
  if (form.get("client_assertion") ?? form.get("client_assertion_type")) {
    if (authorization === undefined && bodySecret === undefined) return parseAssertion(form);
    throw invalidRequest("Send one kind of credentials, not two.");
  }
  if (authorization === undefined) {
    if (bodyId !== undefined) return credentials(bodyId, [bodySecret ?? ""]);
    throw new OAuthError("invalid_client", "No client credentials were sent.");
  }
  const sent = parseBasic(authorization);
  if (bodySecret !== undefined) {
    throw invalidRequest("Send credentials in the header or body, not both.");
  }
  if (bodyId !== undefined && bodyId !== sent.clientId) {
    throw invalidRequest("The header and client_id name different apps.");
  }
  return sent;
}

/**
 * Makes the one error for an unknown app, a disabled app and wrong credentials (RFC 6749 §5.2). For
 * an assertion it also says what a valid one has (RFC 7521 §4.2.1).
 */
export function clientAuthFailed(proof: "secret" | "assertion" = "secret"): OAuthError {
  const failed = "Client authentication failed.";
  const description = proof === "secret" ? failed : `${failed} ${ASSERTION_RULE}`;
  return new OAuthError("invalid_client", description);
}

/** Without a `client_id`, the assertion's subject names the app (RFC 7521 §4.2). */
function parseAssertion(form: Form): ClientCredentials {
  const assertion = parseJwt(form.get("client_assertion") ?? "");
  const clientId = form.get("client_id") ?? assertion?.claims["sub"];
  const isKnown = form.get("client_assertion_type") === ASSERTION_TYPE;
  if (!assertion || typeof clientId !== "string" || !isKnown) {
    throw clientAuthFailed("assertion");
  }
  return { clientId, secrets: [], assertion };
}

function parseBasic(authorization: string): ClientCredentials {
  if (!/^basic(?: |$)/i.test(authorization)) {
    throw new OAuthError("invalid_client", "Authenticate with HTTP Basic or in the body.");
  }
  const pair = decodeBasic(authorization);
  const colon = pair.indexOf(":");
  if (colon < 1) {
    throw new OAuthError("invalid_client", "The HTTP Basic credentials are malformed.");
  }
  return readPair(pair.slice(0, colon), pair.slice(colon + 1));
}

/** Returns the text `id:secret`, or "" if the header does not follow RFC 7617 strictly. */
function decodeBasic(authorization: string): string {
  const encoded = BASIC.exec(authorization)?.[1] ?? "";
  const bytes = Buffer.from(encoded, "base64");
  // The unused bits must be zero, so that credentials have only one spelling (RFC 4648 §3.5).
  if (bytes.toString("base64") !== encoded) return "";
  const text = decodeUtf8(bytes) ?? "";
  return /[\x00-\x1f\x7f]/.test(text) ? "" : text;
}

/**
 * RFC 6749 §2.3.1 wants both halves form-encoded, but many clients send them raw, so a secret with
 * `+` or `%` has two readings. A client encodes both halves or none. If the readings of the id
 * differ, it was encoded, because no client id of Gatepost contains such a character.
 */
function readPair(rawId: string, rawSecret: string): ClientCredentials {
  const id = decodeFormText(rawId);
  const secret = decodeFormText(rawSecret);
  if (id === undefined || secret === undefined) return credentials(rawId, [rawSecret]);
  return credentials(id, id === rawId ? [secret, rawSecret] : [secret]);
}

function credentials(clientId: string, secrets: readonly string[]): ClientCredentials {
  return { clientId, secrets: [...new Set(secrets)].filter((secret) => secret !== "") };
}
