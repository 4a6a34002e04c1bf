import { described, named, oneOf, optional, record, TEXT, URI } from "../../base/shape.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { DEVICE_GRANT, type GrantType } from "../../oauth/grant_type.ts";
import { VERIFIER } from "../../oauth/pkce.ts";
import { grantTypesOf, type Profile } from "../../oauth/profile.ts";
import { appAt } from "../../oauth/resource.ts";
import { checkAppScopes, grantScope, REGISTER_APP } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { PAGES_OF_APPS } from "../cors.ts";
import { byApp, type Operation } from "../operation.ts";
import { exchangeCode } from "./exchange_code.ts";
import { createDeviceExchange } from "./exchange_device_code.ts";
import { exchangeRefreshToken } from "./exchange_refresh_token.ts";
import { type Exchange, issueGrant } from "./issue_grant.ts";
import {
  CREDENTIALS,
  readOAuthForm,
  readResource,
  readScope,
  requireParameter,
  SCOPE,
  SECONDS,
  SECRET,
  TOKEN_TYPE,
} from "./oauth_form.ts";

type TokenServices =
  Parameters<Exchange>[1] & Pick<Services, "clients" | "config" | "metrics" | "figures">;

const tokenForm = (profile: Profile) => named("TokenRequest", record({
  grant_type: oneOf(...grantTypesOf(profile)),
  code: optional(described("authorization_code: the code that the app received.", TEXT)),
  redirect_uri: optional(described("authorization_code: as in the authorize request.", URI)),
  code_verifier: optional(described("authorization_code: for PKCE (RFC 7636).", VERIFIER)),
  refresh_token: optional(described("refresh_token: the newest one of its grant.", TEXT)),
  device_code: optional(described("device_code (RFC 8628): as the device received it.", SECRET)),
  username: optional(described("password: the user name.", TEXT)),
  password: optional(described("password: the user's password.", SECRET)),
  scope: optional(described("Names separated by spaces or commas.", TEXT)),
  resource: optional(described("The token's target (RFC 8707); by default this service.", URI)),
  ...CREDENTIALS,
}));

const TokenResponse = named("TokenAnswer", record({
  access_token: described("A JWT as in RFC 9068.", TEXT),
  token_type: TOKEN_TYPE,
  expires_in: SECONDS,
  refresh_token: optional(described("If the app may use grant refresh_token.", TEXT)),
  scope: SCOPE,
}));

/** POST /authorization/token (RFC 6749 §3.2): all grants. */
export function tokenOperation(services: TokenServices): Operation {
  const { clients, config: { profile }, metrics, figures } = services;
  const exchanges: Record<GrantType, Exchange> = {
    authorization_code: exchangeCode,
    refresh_token: exchangeRefreshToken,
    client_credentials: exchangeCredentials,
    password: exchangePassword,
    [DEVICE_GRANT]: createDeviceExchange(),
  };
  return byApp("POST", "/authorization/token", "getToken",
    "Get an access token by one of the grants", {
    security: "client",
    cors: PAGES_OF_APPS,
    form: tokenForm(profile),
    returns: TokenResponse,
    async handle({ request }) {
      const form = await readOAuthForm(request);
      const name = requireParameter(form, "grant_type");
      const issued = await clients.serve(request, form, async (app) => {
        const type = grantTypesOf(profile).find((known) => known === name);
        if (type === undefined) {
          throw new OAuthError("unsupported_grant_type", "The grant_type is unknown.");
        }
        checkAllowed(app, type);
        return exchanges[type]({ app, form, request }, services);
      });
      if (!issued) {
        throw new OAuthError("invalid_grant", "The user or the app has been disabled.");
      }
      metrics.count("gatepost_tokens_issued_total", [name]);
      figures.add("tokens", true);
      return issued;
    },
  });
}

/** Grant type client_credentials (RFC 6749 §4.4): the app acts for itself. */
const exchangeCredentials: Exchange = async ({ app, form }, services) => {
  const requested = readScope(form);
  const at = appAt(app, await readResource(form, services), requested);
  const scopes = grantScope({ requested, app: at.scopes, user: undefined });
  return issueGrant({ app: at, user: null, type: "client_credentials", scopes }, services);
};

/** Grant type password (RFC 6749 §4.3), with the same throttles as the login. */
const exchangePassword: Exchange = async ({ app, form, request }, services) => {
  const { address } = request;
  const resource = await readResource(form, services);
  const username = requireParameter(form, "username");
  const password = requireParameter(form, "password");
  const requested = readScope(form);
  const at = appAt(app, resource, requested);
  checkAppScopes(requested, at);
  const proven = { id: app.id, isAuthenticated: app.type === "confidential" };
  const login = await services.passwordLogin.check({ username, password, address, app: proven });
  if (!login) throw new OAuthError("invalid_grant", "The user name or the password is wrong.");
  const { user, sinceMs: decidedAtMs, uses } = login;
  const scopes = grantScope({ requested, app: at.scopes, user: user.scopes });
  const audited = { actor: app.id, action: "user.login", target: user.id, address };
  const grant = { app: at, user: user.id, scopes, decidedAtMs, audited, uses };
  return issueGrant({ ...grant, type: "password" }, services);
};

/** Throws OAuthError `unauthorized_client` where the app may not use the grant. */
export function checkAllowed(app: App, type: GrantType): void {
  if (app.grants.includes(type)) return;
  const remedy = app.type === "public" && type === "client_credentials"
    ? "A public app cannot use it (RFC 6749 section 4.4)."
    : app.metadataUrl ? REGISTER_APP
    : `An administrator can allow it: add ${type} to the grants of the app.`;
  throw new OAuthError("unauthorized_client", `The app may not use grant ${type}. ${remedy}`);
}
