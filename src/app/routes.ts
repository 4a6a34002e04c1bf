import type { PasswordHasher } from "../base/password.ts";
import type { Seal } from "../base/seal.ts";
import { equalText } from "../base/secret.ts";
import type { Config } from "../config.ts";
import type { CatalogueEntry } from "../hosting/catalogue.ts";
import type { LoadedEndpoint } from "../hosting/check.ts";
import { authorizeRoutes } from "../http/authorization/authorize.ts";
import { createBrowserSessions } from "../http/authorization/browser_session.ts";
import { createClientAuthenticator } from "../http/authorization/client.ts";
import { introspectRoute } from "../http/authorization/introspect.ts";
import { metadataRoutes } from "../http/authorization/metadata.ts";
import { revokeRoute } from "../http/authorization/revoke.ts";
import { tokenRoute } from "../http/authorization/token.ts";
import { createTokenIssuer } from "../http/authorization/token_issuer.ts";
import { whoamiRoute } from "../http/authorization/whoami.ts";
import type { Bearer } from "../http/bearer.ts";
import { loginRoute } from "../http/consumer/login.ts";
import { subscriptionRoutes } from "../http/consumer/subscription.ts";
import { createPasswordLogin } from "../http/password_login.ts";
import type { Route } from "../http/route.ts";
import { statusRoutes } from "../http/system/status.ts";
import { backendScope, consumerScope } from "../oauth/principal.ts";
import type { Database } from "../store/database.ts";
import type { KeyRing } from "../store/key_ring.ts";
import type { Revocations } from "../store/revocations.ts";
import { hasUsers } from "../store/users.ts";
import { revision, version } from "../version.ts";
import { backendRoutes } from "./backend_routes.ts";
import type { Jobs } from "./jobs.ts";

/** What the built-in routes are made of. */
export interface RoutesOptions {
  readonly config: Config;
  readonly database: Database;
  readonly seal: Seal;
  readonly keys: KeyRing;
  readonly revocations: Revocations;
  readonly hasher: PasswordHasher;
  readonly bearer: Bearer;
  readonly jobs: Jobs;
  readonly pageKey: Uint8Array;
  readonly issuer: string;
  readonly basePath: string;
  readonly listeningUrl: string;
  readonly endpoints: readonly LoadedEndpoint[];
  readonly events: readonly CatalogueEntry[];
  readonly now: () => number;
}

/** Every route of the service itself. */
export function builtInRoutes(options: RoutesOptions): Route[] {
  const { config, database, seal, keys, revocations, bearer, jobs, issuer, basePath, now } = options;
  const { maxBodyBytes, metricsToken } = config;
  const clients = createClientAuthenticator(database, now);
  const passwordLogin = createPasswordLogin({
    database,
    hasher: options.hasher,
    now,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  });
  const tokens = createTokenIssuer({
    issuer,
    keys,
    accessTtlMs: config.accessTokenTtlMs,
    refreshTtlMs: config.refreshTokenTtlMs,
  });
  const ownOrigins = [new URL(issuer).origin, new URL(options.listeningUrl).origin];
  const hostedScopes = options.endpoints.flatMap(({ scopes }) => scopes ?? []);

  const backend = {
    database,
    revocations,
    maxBodyBytes,
    accessTokenTtlMs: config.accessTokenTtlMs,
    basePath,
    hasher: options.hasher,
    now,
  };

  return [
    loginRoute({ database, passwordLogin, tokens, maxBodyBytes, now }),
    ...authorizeRoutes({
      database,
      sessions: createBrowserSessions({ database, issuer, pageKey: options.pageKey, now }),
      passwordLogin,
      issuer,
      basePath,
      codeTtlMs: config.codeTtlMs,
      describeScope: () => undefined,
      now,
    }),
    tokenRoute({ database, tokens, revocations, passwordLogin, clients, issuer, now }),
    revokeRoute({ database, clients, bearer, revocations, now }),
    introspectRoute({ database, clients, bearer, issuer, now }),
    whoamiRoute(database),
    ...metadataRoutes({
      issuer,
      keys,
      scopes: [...new Set([consumerScope, backendScope, ...hostedScopes])],
    }),
    ...subscriptionRoutes({
      database,
      seal,
      basePath,
      maxBodyBytes,
      refuseEndpoint: (url) => refuseEndpoint(url, ownOrigins, jobs),
      eventScopes: (name) => options.events.find((event) => event.name === name)?.scope ?? [],
      wake: jobs.wake,
      now,
    }),
    ...backendRoutes(backend),
    ...statusRoutes({
      version,
      revision,
      readiness: async () => {
        const distributor = jobs.distributorState();
        const isReadable = await hasUsers(database).then(() => true, () => false);
        return {
          isReady: isReadable && distributor !== "stuck",
          parts: { database: isReadable ? "ok" : "unavailable", distributor },
        };
      },
      mayInspect(authorization) {
        const token = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
        if (token === undefined) return false;
        if (metricsToken !== undefined && equalText(token, metricsToken)) return true;
        return bearer.verify(token)?.scopes.includes(backendScope) ?? false;
      },
    }),
  ];
}

/** Why a callback never goes to this address: ours, or one that the guard would refuse anyway. */
function refuseEndpoint(url: URL, ownOrigins: readonly string[], { egress }: Jobs): string | undefined {
  if (ownOrigins.includes(url.origin)) return "Must not be an address of this service.";
  try {
    egress.checkEndpoint(url);
    return undefined;
  } catch {
    return "Must not be an address that callbacks may not reach.";
  }
}
