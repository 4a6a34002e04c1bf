import { OAuthError } from "../../oauth/errors.ts";
import { grantScope } from "../../oauth/scope.ts";
import { type Exchange, issueGrant } from "./issue_grant.ts";
import { readScope, requireParameter } from "./oauth_form.ts";

/** password (RFC 6749 §4.3): for apps that may use it; limited as the login is. */
export const exchangePassword: Exchange = async ({ app, form, request }, services) => {
  const { address } = request;
  const username = requireParameter(form, "username");
  const password = requireParameter(form, "password");
  const requested = readScope(form);
  const outcome = await services.passwordLogin.check({
    username,
    password,
    address,
    app: { id: app.id, isProven: app.type === "confidential" },
  });
  switch (outcome.kind) {
    case "wrong":
      throw new OAuthError("invalid_grant", "The user name or the password is wrong.");
    case "throttled":
      throw new OAuthError("temporarily_unavailable", "Too many failed logins; try again later.", {
        status: 429,
        headers: { "Retry-After": String(outcome.retryAfterSeconds) },
      });
    case "ok": {
      const { user, sinceMs: decidedAtMs } = outcome;
      const scopes = grantScope({ requested, app: app.scopes, user: user.scopes });
      const audited = { actor: app.id, action: "user.login", target: user.id, address };
      const grant = { app, user: user.id, type: "password", scopes, decidedAtMs, audited } as const;
      return issueGrant(grant, services);
    }
    default:
      return outcome satisfies never;
  }
};
