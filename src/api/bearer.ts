import { pathOf } from "../base/base_url.ts";
import { createCache } from "../base/cache.ts";
import type { HttpRequest } from "../base/http_message.ts";
import { idTimeMs } from "../base/id.ts";
import { verifyJwt } from "../base/jwt.ts";
import { type Challenge, Problem } from "../base/problem.ts";
import { SealError } from "../base/seal.ts";
import { ACCESS_TOKEN_TYPE, parseAccessClaims } from "../oauth/claims.ts";
import { type Caller, covers, PERSONAL_PREFIX, toAskFor } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { findPersonalCaller } from "../store/personal_tokens.ts";

export type Bearer = ReturnType<typeof createBearer>;

const CACHE_LIMIT = 10_000;

/** The path of resource metadata; the resource's own path follows it (RFC 9728 §3.1). */
export const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

const TOKEN_MISSING = "Send an access token in the header Authorization: Bearer <token>.";

/**
 * Makes the header of every 401 and 403 about access tokens (RFC 6750 §3, RFC 9728 §5.1). `path` is
 * the request's path; the header points to the metadata of that path.
 */
export function bearerChallenge(
  issuer: string,
  path = pathOf(issuer),
  { error, scopes = [], maxAgeSeconds }: Challenge = {},
): Record<string, string> {
  const { origin } = new URL(issuer);
  const metadata = `${origin}${RESOURCE_METADATA}${path.replaceAll('"', "%22")}`;
  const parameters = [
    'Bearer realm="gatepost"',
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(scopes.length === 0 ? [] : [`scope="${scopes.join(" ")}"`]),
    ...(maxAgeSeconds === undefined ? [] : [`max_age="${maxAgeSeconds}"`]),
    `resource_metadata="${metadata}"`,
  ];
  return { "WWW-Authenticate": parameters.join(", ") };
}

type CheckToken = (token: string) => Caller | undefined | Promise<Caller | undefined>;

/**
 * Makes a function that returns the caller of a request whose token must carry all of `scopes`. The
 * function throws Problem 401 or 403 with the challenge of RFC 6750 §3, and returns a promise only
 * if it must wait. It reads only the Authorization header (RFC 9700 §4.3.2).
 */
export function authenticateBy(check: CheckToken, issuer: string) {
  const refusal = (
    status: 401 | 403,
    detail: string,
    request: HttpRequest,
    scopes: readonly string[],
    error?: "invalid_token" | "insufficient_scope",
  ) =>
    new Problem(status, error ?? "unauthorized", detail, {
      headers: bearerChallenge(issuer, request.path, { error, scopes: scopes.map(toAskFor) }),
    });

  function admit(caller: Caller | undefined, request: HttpRequest, scopes: readonly string[]) {
    if (!caller || caller.audience !== undefined) {
      const detail = "The access token is expired, revoked or invalid.";
      throw refusal(401, detail, request, scopes, "invalid_token");
    }
    if (scopes.every((scope) => covers(caller.scopes, scope))) return caller;
    const detail = `The access token needs scope ${scopes.map(toAskFor).join(" ")}.`;
    throw refusal(403, detail, request, scopes, "insufficient_scope");
  }

  return (request: HttpRequest, scopes: readonly string[]): Caller | Promise<Caller> => {
    const token = bearerToken(request);
    if (token === undefined) throw refusal(401, TOKEN_MISSING, request, scopes);
    const checked = check(token);
    return checked instanceof Promise
      ? checked.then((caller) => admit(caller, request, scopes))
      : admit(checked, request, scopes);
  };
}

/** An unknown key older than this is invalid: keys of other processes are read within a second. */
const NEW_KEY_MS = 60_000;

/** The longest that a personal token is cached; schema.ts relies on it for ended grants. */
const PERSONAL_MS = 60 * 60_000;

/**
 * Makes the check of access tokens. For this service's own tokens it reads the database only if
 * very many are revoked, if a token names a key that was just made, and for a personal token once
 * an hour, or per lifetime of access tokens if that is shorter. Tokens of registered issuers are
 * valid too; without an authorization server only those are.
 */
export function createBearer(
  { issuer, keys, tokens, issuerTokens, revocations, uses, database, now, config }:
    & Pick<Services, "issuer" | "keys" | "tokens" | "issuerTokens" | "revocations" | "uses">
    & Pick<Services, "database" | "now">
    & { readonly config: Pick<Services["config"], "accessTokenTtlMs" | "authorizationServer"> },
) {
  // A signature, once verified, stays valid; all else is checked on every use.
  const verified = createCache<ReturnType<typeof hold>>(CACHE_LIMIT);

  /**
   * Caches a verified token until `untilMs`. `kid` names our key that signed the token. For a token
   * of another issuer, `changes` is the number of issuer changes at which the token was verified.
   */
  function hold(
    token: string,
    caller: Caller,
    untilMs: number,
    { kid, changes }: { readonly kid?: string; readonly changes?: number } = {},
  ) {
    const held = { caller, kid, changes, untilMs, notedIn: 0 };
    verified.set(token, held);
    return held;
  }

  function verifySignature(token: string) {
    if (!config.authorizationServer) return undefined;
    let kid = "";
    const claims = verifyJwt(token, ACCESS_TOKEN_TYPE, (named) => keys.find(kid = named));
    const caller = claims && parseAccessClaims(claims, issuer, now());
    if (caller) return hold(token, caller, caller.expiresAtMs, { kid });
    return Math.abs(now() - idTimeMs(kid)) < NEW_KEY_MS && !keys.find(kid) ? "new key" : undefined;
  }

  /** Reads the keys again, since another process may have just made the key of this token. */
  async function verifyByNewKey(token: string): Promise<Caller | undefined> {
    await keys.refresh().catch((error: unknown) => {
      if (!(error instanceof SealError)) throw error; // /system/ready reports this
    });
    return typeof verifySignature(token) === "object" ? check(token) : verifyIssued(token);
  }

  /** Refuses a token that was never issued here without reading the database. */
  async function verifyPersonal(token: string): Promise<Caller | undefined> {
    const handle = config.authorizationServer ? tokens.parsePersonalToken(token) : undefined;
    const untilMs = now() + Math.min(PERSONAL_MS, config.accessTokenTtlMs);
    const caller = handle && await findPersonalCaller(database, handle, now());
    if (caller) hold(token, caller, Math.min(untilMs, caller.expiresAtMs));
    return caller && check(token);
  }

  async function verifyIssued(token: string): Promise<Caller | undefined> {
    const found = await issuerTokens.verify(token);
    if (found) hold(token, found.caller, found.untilMs, found);
    return found && check(token);
  }

  /** Returns a promise only if it must wait, since every request pays for a promise. */
  const check: CheckToken = (token) => {
    const found = verified.get(token) ?? verifySignature(token);
    if (found === "new key") return verifyByNewKey(token);
    if (!found || found.untilMs <= now()) {
      return token.startsWith(PERSONAL_PREFIX) ? verifyPersonal(token) : verifyIssued(token);
    }
    const { caller, kid, changes } = found;
    if (kid !== undefined && !keys.find(kid)) return undefined;
    if (changes === undefined) uses.note(found);
    else if (changes !== issuerTokens.changes()) return verifyIssued(token);
    const isRevoked = revocations.has(caller);
    if (typeof isRevoked === "boolean") return isRevoked ? undefined : caller;
    return isRevoked.then((revoked) => revoked ? undefined : caller);
  };

  return {
    /** Returns the caller of an access token of any audience; undefined if it is not valid. */
    verify: async (token: string) => check(token),
    authenticate: authenticateBy(check, issuer),
  };
}

const BEARER = "bearer ";

/**
 * Returns the token of an `Authorization: Bearer` header (RFC 6750 §2.1), or undefined without one.
 * A regular expression would read every character of the token, and cost as much as the router.
 */
export function bearerToken({ headers: { authorization = "" } }: HttpRequest): string | undefined {
  const isBearer = authorization.slice(0, BEARER.length).toLowerCase() === BEARER;
  return isBearer ? authorization.slice(BEARER.length).trim() : undefined;
}
