import type { Caller } from "../../oauth/principal.ts";
import type { Database } from "../../store/database.ts";
import { findRefreshToken, type PresentedRefreshToken } from "../../store/grants.ts";
import type { Bearer } from "../bearer.ts";
import { parseHandle } from "./token_issuer.ts";

/** What the `token` parameter of revocation and introspection turned out to be. */
export type PresentedToken =
  | { readonly kind: "access"; readonly app: string; readonly caller: Caller }
  | { readonly kind: "refresh"; readonly app: string; readonly refresh: PresentedRefreshToken }
  /** Never issued, expired or revoked. */
  | { readonly kind: "none" };

/** Finds out by its form what a token is; a hint is not needed (RFC 7009 §2.1). */
export async function findPresentedToken(
  token: string,
  bearer: Bearer,
  database: Database,
): Promise<PresentedToken> {
  const handle = parseHandle(token);
  if (handle) {
    const refresh = await findRefreshToken(database, handle.grantId, handle.hash);
    return refresh ? { kind: "refresh", app: refresh.grant.app, refresh } : { kind: "none" };
  }
  const caller = await bearer.verify(token);
  return caller ? { kind: "access", app: caller.clientId, caller } : { kind: "none" };
}
