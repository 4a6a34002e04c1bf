import { OAuthError } from "../../oauth/errors.ts";
import { appAt } from "../../oauth/resource.ts";
import { checkAppScopes, grantScope } from "../../oauth/scope.ts";
import { type Exchange, issueGrant } from "./issue_grant.ts";
import { readResource, readScope, requireParameter } from "./oauth_form.ts";

/** password (RFC 6749 §4.3): for apps that may use it; limited as the login is. */
export const exchangePassword: Exchange = async ({ app, form, request }, services) => {
  const { address } = request;
  const resource = await readResource(form, services);
  const username = requireParameter(form, "username");
  const password = requireParameter(form, "password");
  const requested = readScope(form);
  const at = appAt(app, resource, requested);
  checkAppScopes(requested, at);
  const proven = { id: app.id, isProven: app.type === "confidential" };
  const login = await services.passwordLogin.check({ username, password, address, app: proven });
  if (!login) throw new OAuthError("invalid_grant", "The user name or the password is wrong.");
  const { user, sinceMs: decidedAtMs, uses } = login;
  const scopes = grantScope({ requested, app: at.scopes, user: user.scopes });
  const audited = { actor: app.id, action: "user.login", target: user.id, address };
  const grant = { app: at, user: user.id, scopes, decidedAtMs, audited, uses };
  return issueGrant({ ...grant, type: "password" }, services);
};
