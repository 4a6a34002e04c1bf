import { shortType, type UnprovenJwt } from "../base/jwt.ts";
import { ACCESS_TOKEN_TYPE } from "./claims.ts";
import type { Issuer } from "./issuer.ts";

/** How far the clocks may differ. */
const LEEWAY_S = 60;
/** The first second that RFC 3339 cannot write. */
const LATEST_S = 253_402_300_800;

/** OpenID Connect Core §2 allows at most 255 ASCII characters; here any visible ones will do. */
const SUBJECT = /^\P{C}{1,255}$/u;

/**
 * Returns what an access token of another issuer claims (RFC 9068 §4): the key that must have
 * signed it, its subject, its scopes and when it expires. Undefined if the token is not for this
 * service, not valid now, of another type, or bound to a key of its holder (`cnf`), which nobody
 * here checks. The caller must verify the signature.
 */
export function readIssuerToken(
  { header, claims }: Pick<UnprovenJwt, "header" | "claims">,
  issuer: Pick<Issuer, "audience" | "scopes" | "scopeClaim" | "jwtType">,
  baseUrl: string,
  nowMs: number,
) {
  const { kid, typ, crit, cty } = header;
  const { sub, aud, exp, nbf, iat, cnf } = claims;
  // RFC 8725 §3.11; media types are not case-sensitive.
  const short = shortType(typ);
  const type = typeof short === "string" ? short.toLowerCase() : "";
  if (type !== ACCESS_TOKEN_TYPE && !(issuer.jwtType && type === "jwt")) return undefined;
  // RFC 7515 §4.1.11; a `cty` means that the token holds another (RFC 7519 §5.2).
  if (typeof kid !== "string" || crit !== undefined || cty !== undefined) return undefined;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.includes(issuer.audience ?? baseUrl) || cnf !== undefined) return undefined;
  const nowS = nowMs / 1000;
  if (!isTime(exp) || exp <= nowS) return undefined;
  const isBegun = (time: unknown) => isTime(time) && time <= nowS + LEEWAY_S;
  if (![nbf, iat].every((time) => time === undefined || isBegun(time))) return undefined;
  if (typeof sub !== "string" || !SUBJECT.test(sub)) return undefined;
  const given = claims[issuer.scopeClaim];
  const names: unknown = typeof given === "string" ? given.split(" ") : given;
  const scopes = issuer.scopes.filter((scope) => Array.isArray(names) && names.includes(scope));
  return { kid, sub, scopes, expiresAtMs: Math.floor(exp * 1000) };
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < LATEST_S;
}
