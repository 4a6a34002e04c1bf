import { decodeFormText, type Form } from "../base/form.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { OAuthError } from "./errors.ts";

/** What a request claims about the app that sends it; nothing of it is proven yet. */
export interface ClientCredentials {
  readonly clientId: string;
  /**
   * The readings of the one secret that was sent, the form-decoded one first; one of them must be
   * the app's. Empty where none was sent: a public app.
   */
  readonly secrets: readonly string[];
}

/** Where client credentials may be: the Authorization header and the parsed body. */
export interface ClientAuthInput {
  readonly authorization: string | undefined;
  readonly form: Form;
}

/** RFC 7617 §2, RFC 9110 §11.4: the scheme in any case, spaces, padded base64 and nothing more. */
const BASIC =
  /^basic +((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/i;

/**
 * Returns the client credentials of a request, from HTTP Basic or the body (RFC 6749 §2.3.1), or
 * `client_id` alone (§3.2.1). Basic with an empty password is `client_id` alone too.
 *
 * @throws {OAuthError} `invalid_request` (400) where credentials are repeated, are sent both ways
 * (§2.3), or name two apps; `invalid_client` (401) where Basic is malformed, another scheme is
 * used, or nothing names an app.
 */
export function parseClientAuth({ authorization, form }: ClientAuthInput): ClientCredentials {
  if (form.duplicates.includes("client_id") || form.duplicates.includes("client_secret")) {
    throw new OAuthError("invalid_request", "Client credentials are repeated in the body.");
  }
  const bodyId = form.get("client_id");
  const bodySecret = form.get("client_secret");
  if (authorization === undefined) return fromBody(bodyId, bodySecret);
  const credentials = parseBasic(authorization);
  if (bodySecret !== undefined) {
    throw new OAuthError("invalid_request", "Send credentials in the header or body, not both.");
  }
  if (bodyId !== undefined && bodyId !== credentials.clientId) {
    throw new OAuthError("invalid_request", "The header and client_id name different apps.");
  }
  return credentials;
}

/**
 * The one answer to credentials that prove nothing: unknown app, disabled app and wrong secret
 * alike, so that it does not tell which (RFC 6749 §5.2).
 */
export function clientAuthFailed(): OAuthError {
  return new OAuthError("invalid_client", "Client authentication failed.");
}

function fromBody(clientId: string | undefined, secret: string | undefined): ClientCredentials {
  if (clientId === undefined) {
    throw new OAuthError("invalid_client", "No client credentials were sent.");
  }
  return { clientId, secrets: secret === undefined ? [] : [secret] };
}

function parseBasic(authorization: string): ClientCredentials {
  if (!/^basic(?: |$)/i.test(authorization)) {
    throw new OAuthError("invalid_client", "Authenticate with HTTP Basic or in the body.");
  }
  const pair = decodeBasic(authorization);
  const colon = pair?.indexOf(":") ?? -1;
  if (pair === undefined || colon < 1) {
    throw new OAuthError("invalid_client", "The HTTP Basic credentials are malformed.");
  }
  return readPair(pair.slice(0, colon), pair.slice(colon + 1));
}

/** Returns the `id:secret` text, or undefined where the header is not strictly RFC 7617. */
function decodeBasic(authorization: string): string | undefined {
  const encoded = BASIC.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, "base64");
  // Bits that the padding leaves over must be zero: one pair has one spelling (RFC 4648 §3.5).
  if (bytes.toString("base64") !== encoded) return undefined;
  const text = decodeUtf8(bytes);
  return text === undefined || /[\x00-\x1f\x7f]/.test(text) ? undefined : text;
}

/**
 * RFC 6749 §2.3.1 has both halves form-encoded, yet many clients send them raw, so a secret with
 * `+` or `%` may mean either. The halves are read alike: where the ids of the two readings
 * differ only the encoded one can be meant, since no client id of Gatepost's has such a character.
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
