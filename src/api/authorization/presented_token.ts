import type { Caller } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { findRefreshToken, type PresentedRefreshToken } from "../../store/grants.ts";

/** What the `token` parameter of revocation and introspection turned out to be. */
export type PresentedToken =
  | { readonly kind: "access"; readonly app: string; readonly caller: Caller }
  | ({ readonly kind: "refresh"; readonly app: string } & PresentedRefreshToken);

/** What a presented token is looked up with. */
export type PresentedTokenServices = Pick<
  Services,
  "database" | "bearer" | "tokens" | "keys" | "now"
>;

/**
 * Finds out by its form what a token is; a hint is not needed (RFC 7009 §2.1). Undefined for one
 * that was never issued, has expired or is revoked.
 */
export async function findPresentedToken(
  token: string,
  { database, bearer, tokens, keys, now }: PresentedTokenServices,
): Promise<PresentedToken | undefined> {
  const handle = tokens.parseRefreshToken(token);
  if (handle) {
    const refresh = await findRefreshToken(database, handle, now());
    return refresh && { kind: "refresh", app: refresh.grant.app, ...refresh };
  }
  let caller = await bearer.verify(token);
  if (!caller && token.includes(".")) {
    await keys.refresh(); // another process may have signed it with a key of its own just now
    caller = await bearer.verify(token);
  }
  return caller && { kind: "access", app: caller.clientId, caller };
}
