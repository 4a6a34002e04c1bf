import { createBrowserSessions } from "../api/authorization/browser_session.ts";
import { createClientAuthenticator } from "../api/authorization/client.ts";
import { createClientDocuments } from "../api/authorization/client_documents.ts";
import { createTokenIssuer } from "../api/authorization/token_issuer.ts";
import { createBearer } from "../api/bearer.ts";
import { createIssuerTokens } from "../api/issuer_tokens.ts";
import { createPasswordLogin } from "../api/password_login.ts";
import { createInspectorCheck } from "../api/system/status.ts";
import { pathOf } from "../base/base_url.ts";
import { isReachableUrl, isReceiver } from "../outbound/reachable.ts";
import { neededScopes, scopeWords } from "../hosting/catalogue.ts";
import type { Hosted } from "../hosting/check.ts";
import { consoleApp, CONSOLE_PATH, WEBHOOKS_PATH } from "../oauth/console_app.ts";
import { OWN_SCOPES } from "../oauth/scope.ts";
import type { Services } from "../services.ts";
import { createAccounts } from "../store/accounts.ts";

/** What the other services are made from: loaded modules, and the parts of this process. */
type Foundation =
  & Omit<Services, "accounts" | "consoleApp" | "consoleUrl" | "issuer" | "site" | "passwordLogin"
    | "clients" | "documents" | "tokens" | "bearer" | "issuerTokens" | "checkInspector" | "sessions"
    | "scopes" | "scopeWords" | "refuseEndpoint">
  & {
    readonly hosted: Hosted;
    /** The key that protects the state which pages send back. */
    readonly pageKey: Uint8Array;
    /** The URL at which the service listens. */
    readonly url: string;
    /** The URL of the console's own listener, if it has one. */
    readonly consoleListener: string | undefined;
  };

/** Makes the services that operations use. */
export function createServices(foundation: Foundation): Services {
  const { hosted, pageKey, url, consoleListener, ...base } = foundation;
  const { config, database, keys, revocations, failures, now } = base;
  const issuer = config.baseUrl ?? url;
  const consoleUrl = config.console === "off" || !config.authorizationServer ? undefined
    : consoleListener ?? issuer;
  // Without the authorization server nobody can log in, and so there is no built-in app.
  const places = consoleUrl === undefined ? [] : [`${consoleUrl}${CONSOLE_PATH}`];
  const builtIn = config.authorizationServer
    ? consoleApp([...places, `${issuer}${WEBHOOKS_PATH}`], issuer)
    : undefined;
  const accounts = createAccounts(database, revocations, builtIn);
  const basePath = pathOf(issuer);
  const { host } = new URL(issuer);
  const tokens = createTokenIssuer({ issuer, keys, config, pageKey });
  const issuerTokens = createIssuerTokens({ ...base, issuer });
  const bearer = createBearer({ ...base, issuer, tokens, issuerTokens });
  const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  const ownOrigins = [issuer, url, consoleListener ?? url].map((each) => new URL(each).origin);
  return {
    ...base,
    accounts,
    consoleApp: builtIn,
    consoleUrl,
    issuer,
    site: { name: config.name ?? host, host, basePath },
    passwordLogin: createPasswordLogin({ ...base, sleep }),
    clients: createClientAuthenticator({ accounts, config, database, failures, issuer, now }),
    documents: createClientDocuments(base),
    tokens,
    bearer,
    issuerTokens,
    checkInspector: createInspectorCheck(bearer, config.metricsToken),
    sessions: createBrowserSessions({ ...base, issuer, pageKey }),
    scopes: [...new Set([...OWN_SCOPES.keys(), ...neededScopes(hosted.endpoints)])],
    scopeWords: scopeWords(hosted.scopes),
    refuseEndpoint: (target) => refuseEndpoint(target, ownOrigins, foundation),
  };
}

/** Returns why no callback goes to a URL: it is this service's, or the address guard refuses it. */
function refuseEndpoint(url: URL, own: readonly string[], { config, receivers }: Foundation) {
  if (isReceiver(url.href, receivers?.at)) return undefined;
  if (own.includes(url.origin)) return "Must not be an address of this service.";
  return isReachableUrl(url, config.callbackAllow) ? undefined
    : "Must be an address that callbacks may reach.";
}
