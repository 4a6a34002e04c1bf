import type { Caller } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { findRefreshToken, type Grant, type PresentedRefreshToken } from "../../store/grants.ts";

/** What the `token` parameter of revocation and introspection turned out to be. */
export interface PresentedToken extends Pick<Grant, "app" | "user" | "scopes"> {
  /** The id or the URL of the resource that it is for; none: this service. */
  readonly resource?: string | null | undefined;
  readonly grantId: string;
  readonly untilMs: number;
  /** Of an access token: its own id. */
  readonly jti?: string;
  /** Of another issuer's token: that issuer, and the principal. */
  readonly foreign?: Readonly<Record<"iss" | "sub", string>>;
  /** Of a refresh token. */
  readonly state?: PresentedRefreshToken["state"];
}

/** What a presented token is looked up with. */
export type TokenLookup =
  Pick<Services, "database" | "bearer" | "config" | "tokens" | "keys" | "now">;

/**
 * Finds out by its form what a token is; a hint is not needed (RFC 7009 §2.1). Undefined for one
 * that was never issued or is not accepted here, and for an access token that has expired or is
 * revoked.
 */
export async function findPresentedToken(
  token: string,
  { database, bearer, config, tokens, keys, now }: TokenLookup,
): Promise<PresentedToken | undefined> {
  const handle = config.authorizationServer ? tokens.parseRefreshToken(token) : undefined;
  if (handle) {
    const presented = await findRefreshToken(database, handle, now());
    if (!presented) return undefined;
    const { grant: { refreshUntilMs: untilMs, ...grant }, state } = presented;
    return { ...grant, grantId: handle.grantId, untilMs, state };
  }
  let caller = await bearer.verify(token);
  if (!caller && token.includes(".")) {
    await keys.refresh(); // another process may have signed it with a key of its own just now
    caller = await bearer.verify(token);
  }
  return caller && presentedBy(caller);
}

/** An access token by what its caller says. */
export function presentedBy({ clientId: app, kind, sub, issuer: iss, ...caller }: Caller) {
  const { expiresAtMs: untilMs, audience: resource, ...rest } = caller;
  const foreign = iss === undefined ? {} : { foreign: { iss, sub } };
  return { ...rest, app, user: kind === "user" ? sub : null, untilMs, resource, ...foreign };
}
