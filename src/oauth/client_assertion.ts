import { importPublicJwk } from "../base/jwk.ts";
import { isSignedBy, shortType, type UnprovenJwt } from "../base/jwt.ts";
import type { App } from "./app.ts";

/** The only `client_assertion_type` (RFC 7523 §2.2). */
export const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** How long an assertion may live, and how far the clocks may differ where its life begins. */
const [MAX_LIFE_S, LEEWAY_S] = [5 * 60, 60];

/** What a refused client is told: libraries send other audiences and longer lives by default. */
export const ASSERTION_RULE = "An assertion has iss and sub = the client_id, aud = the issuer " +
  `alone, exp at most ${MAX_LIFE_S / 60} minutes ahead, a new jti, and a key of the app signs it.`;

const HEADER_MEMBERS = ["alg", "typ", "kid"];
/** The second name is that of draft-ietf-oauth-rfc7523bis. */
const TYPES: readonly unknown[] = [undefined, "JWT", "client-authentication+jwt"];

/**
 * The `jti` of an assertion by which an app proves itself (RFC 7523 §3), and until when it must not
 * come again; undefined where the assertion proves nothing. The app's own keys decide on the
 * algorithm (RFC 8725 §3.1); `kid` chooses among them, and of the header nothing else counts. The
 * audience is the issuer alone, so that no other server can present it here.
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
  const isProven = app.jwks.filter((jwk) => kid === undefined || jwk.kid === kid)
    .map(importPublicJwk)
    .some((key) => key && isSignedBy(jwt, key));
  // Remembered for longer than it is good, since another process, whose clock differs, forgets it.
  return isProven ? { jti, untilMs: (exp + 2 * LEEWAY_S) * 1000 } : undefined;
}
