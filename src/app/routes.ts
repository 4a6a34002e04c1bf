import type { Cidr } from "../base/cidr.ts";
import type { PasswordHasher } from "../base/password.ts";
import type { Seal } from "../base/seal.ts";
import type { Config } from "../config.ts";
import type { CatalogueEntry } from "../hosting/catalogue.ts";
import type { LoadedEndpoint } from "../hosting/check.ts";
import { authorizeRoutes } from "../http/authorization/authorize.ts";
import type { BrowserSessions } from "../http/authorization/browser_session.ts";
import { createClientAuthenticator } from "../http/authorization/client.ts";
import { introspectRoute } from "../http/authorization/introspect.ts";
import { metadataRoutes } from "../http/authorization/metadata.ts";
import { revokeRoute } from "../http/authorization/revoke.ts";
import { tokenRoute } from "../http/authorization/token.ts";
import { createTokenIssuer } from "../http/authorization/token_issuer.ts";
import { whoamiRoute } from "../http/authorization/whoami.ts";
import type { Bearer } from "../http/bearer.ts";
import { deliveryRoutes } from "../http/consumer/delivery.ts";
import { eventCatalogueRoute } from "../http/consumer/event.ts";
import { consumerGrantRoutes } from "../http/consumer/grant.ts";
import { loginRoute } from "../http/consumer/login.ts";
import { subscriptionRoutes } from "../http/consumer/subscription.ts";
import { cronjobRoutes } from "../http/backend/cronjob.ts";
import type { Site } from "../http/pages/page_layout.ts";
import { createPasswordLogin } from "../http/password_login.ts";
import type { Route } from "../http/route.ts";
import { createInspectorCheck, metricsRoute } from "../http/system/metrics.ts";
import { openApiRoute } from "../http/system/openapi_route.ts";
import { type Readiness, statusRoutes } from "../http/system/status.ts";
import { checkReachable } from "../job/reachable.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import type { ScopeWords } from "../oauth/scope.ts";
import type { Accounts } from "../store/accounts.ts";
import type { Database } from "../store/database.ts";
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
