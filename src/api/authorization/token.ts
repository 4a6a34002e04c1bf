import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { type GrantType, parseGrantType } from "../../oauth/grant_type.ts";
import { formatScope } from "../../oauth/scope.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { PublicRoute } from "../route.ts";
import type { ClientAuthenticator } from "./client.ts";
import type { ExchangeRequest, ExchangeServices, IssuedTokens } from "./exchange.ts";
import { exchangeClientCredentials } from "./exchange_client_credentials.ts";
import { exchangeCode } from "./exchange_code.ts";
import { exchangePassword } from "./exchange_password.ts";
import { exchangeRefreshToken } from "./exchange_refresh_token.ts";
import { checkResource, readOAuthForm, requireParameter } from "./oauth_form.ts";

/** What the token endpoint works with. */
export interface TokenRouteOptions extends ExchangeServices {
  readonly clients: ClientAuthenticator;
  readonly issuer: string;
  /** Told of every token that is answered, for the metrics. */
  readonly observe?: (type: GrantType) => void;
}

/** POST /authorization/token (RFC 6749 §3.2): the four grants. */
export function tokenRoute(options: TokenRouteOptions): PublicRoute {
  return {
    method: "POST",
    path: "/authorization/token",
    access: "public",
    cors: true,
    errors: "oauth",
    summary: "Get an access token by one of the four grants",
    async handle({ request }) {
      const form = await readOAuthForm(request);
      const named = requireParameter(form, "grant_type");
      const app = await options.clients.authenticate(request, form);
      const type = parseGrantType(named);
      if (type === undefined) {
        throw new OAuthError("unsupported_grant_type", "This grant_type is not known here.");
      }
      checkAllowed(app, type);
      checkResource(form, options.issuer);
      const issued = await exchange(type, { app, form, request }, options);
      options.observe?.(type);
      return jsonResponse(200, {
        access_token: issued.accessToken,
        token_type: "bearer",
        expires_in: issued.expiresInSeconds,
        ...(issued.refreshToken !== undefined && { refresh_token: issued.refreshToken }),
        scope: formatScope(issued.scopes),
      }, NO_STORE);
    },
  };
}

function exchange(
  type: GrantType,
  request: ExchangeRequest,
  services: ExchangeServices,
): Promise<IssuedTokens> {
  switch (type) {
    case "authorization_code":
      return exchangeCode(request, services);
    case "refresh_token":
      return exchangeRefreshToken(request, services);
    case "client_credentials":
      return exchangeClientCredentials(request, services);
    case "password":
      return exchangePassword(request, services);
    default:
      return type satisfies never;
  }
}

function checkAllowed(app: App, type: GrantType): void {
  if (app.grants.includes(type)) return;
  const remedy = app.type === "public" && type === "client_credentials"
    ? "A public app cannot use it (RFC 6749 section 4.4)."
    : `An administrator can allow it: add ${type} to the grants of the app.`;
  throw new OAuthError("unauthorized_client", `The app may not use grant ${type}. ${remedy}`);
}
