/**
 * Authorization code with PKCE for an app without a secret: what every single-page app needs, and
 * nothing that a library would have to be fetched for.
 *
 * @typedef {{ issuer: string, authorization_endpoint: string, token_endpoint: string,
 *   revocation_endpoint: string }} Metadata
 * @typedef {{ clientId: string, redirectUri: string, scope: string }} App
 * @typedef {{ access_token: string, refresh_token: string, expires_in: number, scope: string }}
 *   Tokens
 */

/** Where state and verifier wait for the way back: this tab alone, and only until then. */
const PENDING = "pending-sign-in";

/**
 * Keeps a new state and code verifier, and returns the address to go to (RFC 7636 §4).
 *
 * @param {Metadata} metadata
 * @param {App} app
 * @returns {Promise<string>}
 */
export async function signInAddress(metadata, app) {
  const [state, verifier] = [randomText(), randomText()];
  sessionStorage.setItem(PENDING, JSON.stringify({ state, verifier }));
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: app.clientId,
    redirect_uri: app.redirectUri,
    scope: app.scope,
    state,
    code_challenge: base64url(new Uint8Array(hash)),
    code_challenge_method: "S256",
  });
  return `${metadata.authorization_endpoint}?${query}`;
}

/**
 * Reads the way back: returns the token request's form, or throws what is wrong. State proves that
 * this tab asked (RFC 6749 §10.12), `iss` that the right server answers (RFC 9207). Both are
 * checked before anything else is believed, and what was kept is good for one look.
 *
 * @param {URLSearchParams} query
 * @param {Metadata} metadata
 * @param {App} app
 * @returns {Record<string, string>}
 */
export function readWayBack(query, metadata, app) {
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");
  sessionStorage.removeItem(PENDING);
  if (pending.state === undefined || query.get("state") !== pending.state) {
    throw new Error("This answer belongs to no sign-in of this tab (state). Nothing was used.");
  }
  if (query.get("iss") !== metadata.issuer) {
    throw new Error("This answer comes from another server (iss). Nothing was used.");
  }
  const error = query.get("error");
  if (error === "access_denied") throw new Error("You did not allow it. Nothing was shared.");
  if (error !== null) throw new Error(`${error}: ${query.get("error_description")}`);
  return {
    grant_type: "authorization_code",
    client_id: app.clientId,
    code: query.get("code") ?? "",
    redirect_uri: app.redirectUri,
    code_verifier: pending.verifier,
  };
}

/** 256 bits that nobody can guess. */
function randomText() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
