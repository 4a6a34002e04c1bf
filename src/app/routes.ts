import type { Cidr } from "../base/cidr.ts";
import type { PasswordHasher } from "../base/password.ts";
import type { Seal } from "../base/seal.ts";
import type { Config } from "../config.ts";
import type { CatalogueEntry } from "../hosting/catalogue.ts";
import type { LoadedEndpoint } from "../hosting/check.ts";
import { authorizeRoutes } from "../api/authorization/authorize.ts";
import type { BrowserSessions } from "../api/authorization/browser_session.ts";
import { createClientAuthenticator } from "../api/authorization/client.ts";
import { introspectRoute } from "../api/authorization/introspect.ts";
import { metadataRoutes } from "../api/authorization/metadata.ts";
import { revokeRoute } from "../api/authorization/revoke.ts";
import { tokenRoute } from "../api/authorization/token.ts";
import { createTokenIssuer } from "../api/authorization/token_issuer.ts";
import { whoamiRoute } from "../api/authorization/whoami.ts";
import type { Bearer } from "../api/bearer.ts";
import { deliveryRoutes } from "../api/consumer/delivery.ts";
import { eventCatalogueRoute } from "../api/consumer/event.ts";
import { consumerGrantRoutes } from "../api/consumer/grant.ts";
import { loginRoute } from "../api/consumer/login.ts";
import { subscriptionRoutes } from "../api/consumer/subscription.ts";
import { cronjobRoutes } from "../api/backend/cronjob.ts";
import type { Site } from "../api/pages/page_layout.ts";
import { createPasswordLogin } from "../api/password_login.ts";
import type { Route } from "../api/route.ts";
import { createInspectorCheck, metricsRoute } from "../api/system/metrics.ts";
import { openApiRoute } from "../api/system/openapi_route.ts";
import { type Readiness, statusRoutes } from "../api/system/status.ts";
import { checkReachable } from "../delivery/reachable.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import type { ScopeWords } from "../oauth/scope.ts";
import type { Accounts } from "../store/accounts.ts";
import type { Database } from "../database/database.ts";
import type { FailureAudit } from "../store/failure_audit.ts";
import type { KeyRing } from "../store/key_ring.ts";
import type { Revocations } from "../store/revocations.ts";
import { revision, version } from "../version.ts";
import { backendRoutes } from "./backend_routes.ts";
import type { Jobs } from "./jobs.ts";
import { countLogins, type ServiceMetrics } from "./metrics.ts";

/** What the built-in routes are made of. */
export interface RoutesOptions {
  readonly config: Config;
  readonly database: Database;
  readonly seal: Seal;
  readonly keys: KeyRing;
  readonly accounts: Accounts;
  readonly revocations: Revocations;
  readonly hasher: PasswordHasher;
  readonly bearer: Bearer;
  readonly failures: FailureAudit;
  readonly jobs: Jobs;
  readonly pageKey: Uint8Array;
  readonly sessions: BrowserSessions;
  readonly site: Site;
  readonly issuer: string;
  readonly basePath: string;
  readonly listeningUrl: string;
  readonly endpoints: readonly LoadedEndpoint[];
  readonly scopeWords: ReadonlyMap<string, ScopeWords>;
  readonly events: readonly CatalogueEntry[];
  readonly metrics: ServiceMetrics;
  readonly readiness: (withParts: boolean) => Promise<Readiness>;
  readonly now: () => number;
}

/** Every route of the service itself. */
export function builtInRoutes(options: RoutesOptions): Route[] {
  const { config, database, accounts, seal, keys, revocations, bearer, failures, jobs } = options;
  const { issuer, basePath, now } = options;
  const { maxBodyBytes } = config;
  const { metrics } = options;
  const clients = createClientAuthenticator({ accounts, failures, now });
  const passwordLogin = countLogins(
    createPasswordLogin({
      database,
      hasher: options.hasher,
      failures,
      now,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    }),
    metrics,
  );
  const inspectors = createInspectorCheck(bearer, config.metricsToken);
  const tokens = createTokenIssuer({
    issuer,
    keys,
    accessTtlMs: config.accessTokenTtlMs,
    refreshTtlMs: config.refreshTokenTtlMs,
    pageKey: options.pageKey,
  });
  const ownOrigins = [new URL(issuer).origin, new URL(options.listeningUrl).origin];
  const refuse = (url: URL) => refuseEndpoint(url, ownOrigins, config.callbackAllow);
  const hostedScopes = options.endpoints.flatMap(({ scopes }) => scopes ?? []);
  const scopes = [...new Set([CONSUMER_SCOPE, BACKEND_SCOPE, ...hostedScopes])];

  const backend = {
    database,
    revocations,
    maxBodyBytes,
    accessTokenTtlMs: config.accessTokenTtlMs,
    basePath,
    hasher: options.hasher,
    keys,
    maxPayloadBytes: config.maxPayloadBytes,
    refuseEndpoint: refuse,
    wake: jobs.wake,
    observeDispatch: metrics.countEvents,
    now,
  };

  const routes: Route[] = [
    loginRoute({
      database,
      revocations,
      passwordLogin,
      tokens,
      issuer,
      maxBodyBytes,
      now,
      observe: metrics.countToken,
    }),
    ...authorizeRoutes({
      database,
      sessions: options.sessions,
      scopeWords: options.scopeWords,
      passwordLogin,
      issuer,
      site: options.site,
      codeTtlMs: config.codeTtlMs,
      now,
    }),
    tokenRoute({
      database,
      accounts,
      tokens,
      revocations,
      passwordLogin,
      clients,
      issuer,
      now,
      observe: metrics.countToken,
    }),
    revokeRoute({ database, clients, bearer, tokens, keys, revocations, now }),
    introspectRoute({ database, clients, bearer, tokens, keys, issuer, now }),
    whoamiRoute(database),
    ...metadataRoutes({ issuer, keys, scopes }),
    ...subscriptionRoutes({
      database,
      seal,
      basePath,
      maxBodyBytes,
      refuseEndpoint: refuse,
      wake: jobs.wake,
      now,
    }),
    ...deliveryRoutes({ database, basePath, wake: jobs.wake, now }),
    eventCatalogueRoute(options.events),
    ...consumerGrantRoutes(backend),
    ...backendRoutes(backend),
    ...cronjobRoutes({ database, jobs, now }),
    ...statusRoutes({
      version,
      revision,
      readiness: options.readiness,
      inspectors,
    }),
    metricsRoute(metrics.registry, inspectors),
  ];
  const { endpoints: hosted, events, scopeWords } = options;
  const document = { version, issuer, routes, hosted, events, scopes, scopeWords };
  return [...routes, openApiRoute(document, bearer)];
}

/** Why a callback never goes to this address: ours, or one that the guard would refuse anyway. */
function refuseEndpoint(
  url: URL,
  ownOrigins: readonly string[],
  allow: readonly Cidr[],
): string | undefined {
  if (ownOrigins.includes(url.origin)) return "Must not be an address of this service.";
  try {
    checkReachable(url, allow);
    return undefined;
  } catch {
    return "Must not be an address that callbacks may not reach.";
  }
}
