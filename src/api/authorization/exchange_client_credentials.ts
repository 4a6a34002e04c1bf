import { grantScope } from "../../oauth/scope.ts";
import { issueGrant } from "./issue_grant.ts";
import { readScope } from "./oauth_form.ts";
import type { ExchangeRequest, ExchangeServices, IssuedTokens } from "./exchange.ts";

/** client_credentials (RFC 6749 §4.4): the app acts for itself. */
export async function exchangeClientCredentials(
  { app, form }: ExchangeRequest,
  services: ExchangeServices,
): Promise<IssuedTokens> {
  const scopes = grantScope({ requested: readScope(form), app: app.scopes, user: undefined });
  return issueGrant({ app, user: undefined, type: "client_credentials", scopes }, services);
}
