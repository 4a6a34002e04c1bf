import type { Caller } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { findRefreshToken, type PresentedRefreshToken } from "../../store/grants.ts";

/** The caller of the token that a revocation or introspection request is about. */
export interface PresentedToken extends Omit<Caller, "jti"> {
  /** The id or the URL of the resource that the token is for; undefined: this service. */
  readonly audience?: string | undefined;
  /** Only of an access token. */
  readonly jti?: string;
  /** Only of a refresh token. */
  readonly state?: PresentedRefreshToken["state"];
}

/** What a presented token is looked up with. */
export type TokenLookup = Pick<Services, "database" | "bearer" | "config" | "tokens" | "now">;

/**
 * Detects the kind of a token by its form, so no hint is needed (RFC 7009 §2.1). Undefined if the
 * token was never issued or is not accepted here, and for an access token that is expired or
 * revoked.
 */
export async function findPresentedToken(
  token: string,
  { database, bearer, config, tokens, now }: TokenLookup,
): Promise<PresentedToken | undefined> {
  const handle = config.authorizationServer ? tokens.parseRefreshToken(token) : undefined;
  if (handle) {
    const presented = await findRefreshToken(database, handle, now());
    if (!presented) return undefined;
    const { grant: { id: grantId, app: clientId, user, scopes, ...grant }, state } = presented;
    const kind = user === null ? "app" : "user";
    const audience = grant.resource ?? undefined;
    const rest = { audience, expiresAtMs: grant.refreshUntilMs, state };
    return { sub: user ?? clientId, kind, clientId, scopes, grantId, ...rest };
  }
  return bearer.verify(token);
}
