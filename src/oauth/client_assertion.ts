import { importPublicJwk } from "../base/jwk.ts";
import { isSignedBy, shortType, type UnprovenJwt } from "../base/jwt.ts";
import type { App } from "./app.ts";

/** The only `client_assertion_type` (RFC 7523 §2.2). */
export const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** The longest lifetime of an assertion, and how far the client's clock may differ from ours. */
const [MAX_LIFE_S, LEEWAY_S] = [5 * 60, 60];

/** The hint for refused clients: libraries send other audiences and longer lives by default. */
export const ASSERTION_RULE = "An assertion has iss and sub = the client_id, aud = the issuer " +
  `alone, exp at most ${MAX_LIFE_S / 60} minutes ahead, a new jti, and a key of the app signs it.`;

const HEADER_MEMBERS = ["alg", "typ", "kid"];
/** The last type comes from draft-ietf-oauth-rfc7523bis. */
const TYPES: readonly unknown[] = [undefined, "JWT", "client-authentication+jwt"];

/**
 * Verifies the assertion by which an app authenticates (RFC 7523 §3). Returns its `jti` and until
 * when that must not be used again; undefined if the assertion is not valid. The app's own keys
 * decide on the algorithm (RFC 8725 §3.1), and `kid` chooses among them. The audience must be this
 * issuer alone, so that no other server can present an assertion here that it has received.
 */
export function verifyAssertion(
  jwt: UnprovenJwt,
  app: Pick<App, "id" | "jwks">,
  issuer: string,
  nowMs: number,
): { readonly jti: string; readonly untilMs: number } | undefined {
  const { header: { kid, typ }, claims: { iss, sub, aud, exp, nbf, iat, jti } } = jwt;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (iss !== app.id || sub !== app.id) return undefined;
  if (audiences.length !== 1 || audiences[0] !== issuer) return undefined;
  const isWithin = (time: unknown, fromS: number, toS: number): time is number =>
    typeof time === "number" && time > nowMs / 1000 + fromS && time <= nowMs / 1000 + toS;
  if (!isWithin(exp, 0, MAX_LIFE_S)) return undefined;
  if (iat !== undefined && !isWithin(iat, -MAX_LIFE_S - LEEWAY_S, LEEWAY_S)) return undefined;
  if (nbf !== undefined && !isWithin(nbf, -Infinity, LEEWAY_S)) return undefined;
  if (typeof jti !== "string" || jti === "" || !TYPES.includes(shortType(typ))) return undefined;
  if (!Object.keys(jwt.header).every((name) => HEADER_MEMBERS.includes(name))) return undefined;
  const isSigned = app.jwks.filter((jwk) => kid === undefined || jwk.kid === kid)
    .map(importPublicJwk)
    .some((key) => key && isSignedBy(jwt, key));
  // Longer than the assertion is valid, because the process that forgets it may have another clock.
  return isSigned ? { jti, untilMs: (exp + 2 * LEEWAY_S) * 1000 } : undefined;
}
