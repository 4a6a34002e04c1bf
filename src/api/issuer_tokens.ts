import { createLookup } from "../base/cache.ts";
import { isSignedBy, parseJwt } from "../base/jwt.ts";
import { sha256 } from "../base/secret.ts";
import { readIssuerToken } from "../oauth/issuer_token.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { listActiveIssuers, obtainPrincipal } from "../store/issuers.ts";
import { createIssuerKeys } from "./issuer_keys.ts";

export type IssuerTokens = ReturnType<typeof createIssuerTokens>;

const CACHE_LIMIT = 10_000;

/** Makes the check of other issuers' tokens. A change of any issuer or principal empties caches. */
export function createIssuerTokens(
  services: Pick<Services, "database" | "revocations" | "issuer" | "fetchDocument" | "now">,
) {
  const { database, revocations: { issuerChanges }, issuer: baseUrl, now } = services;
  const findKeys = createIssuerKeys(services);
  const listIssuers = createLookup(1, issuerChanges, () => listActiveIssuers(database));
  const findPrincipal = createLookup(CACHE_LIMIT, issuerChanges, (issuer: string, sub: string) =>
    obtainPrincipal(database, issuer, sub, now()));

  return {
    /** The number of issuer changes; a result of `verify` is valid while the number stays. */
    changes: issuerChanges,
    /** The active issuers, oldest first; the database is not read before one was ever added. */
    list: async () => issuerChanges() === 0 ? [] : await listIssuers() ?? [],
    /**
     * Returns the caller of a token, and until when the caller may be cached. `iss` selects the
     * issuer, then `kid` selects among its keys alone, so that no issuer speaks for another.
     */
    async verify(token: string) {
      const jwt = issuerChanges() === 0 ? undefined : parseJwt(token);
      const iss = jwt?.claims["iss"];
      if (!jwt || iss === baseUrl) return undefined;
      const changes = issuerChanges();
      const issuer = (await listIssuers())?.find((each) => each.issuer === iss);
      const parsed = issuer && readIssuerToken(jwt, issuer, baseUrl, now());
      const found = parsed && await findKeys(issuer.jwksUri, parsed.kid, changes);
      if (!found || !found.keys.some((key) => isSignedBy(jwt, key))) return undefined;
      const { sub, scopes, expiresAtMs } = parsed;
      const principal = await findPrincipal(issuer.id, sub);
      if (principal?.status !== "active") return undefined;
      const caller: Caller = {
        sub: principal.id,
        kind: "principal",
        clientId: issuer.id,
        scopes,
        grantId: principal.id,
        // The hash leaves out the signature, since an ECDSA signature has a second valid form.
        jti: sha256(jwt.signed).toString("hex"),
        issuer: issuer.issuer,
        expiresAtMs,
      };
      return { caller, untilMs: Math.min(expiresAtMs, found.untilMs), changes };
    },
  };
}
