import { Problem } from "../../base/problem.ts";
import { described, named, record, TEXT } from "../../base/shape.ts";
import { LOGIN_APP } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { issueGrant, type IssuingServices } from "../authorization/issue_grant.ts";
import { SECRET } from "../authorization/oauth_form.ts";
import { bearerChallenge } from "../bearer.ts";
import { PAGES_OF_APPS } from "../cors.ts";
import { anyone, type Operation } from "../operation.ts";

const LoginRequest = named("LoginRequest", record({ username: TEXT, password: SECRET }));

const LoginResponse = named("LoginAnswer", record({
  token: described("An access token, in JWT form.", TEXT),
}));

const APP = { id: LOGIN_APP, grants: [] };

/** POST /consumer/login: exchanges name and password for an access token with all user scopes. */
export function loginOperation(
  services: IssuingServices & Pick<Services, "passwordLogin" | "issuer" | "metrics" | "figures">,
): Operation {
  const { passwordLogin, issuer, metrics, figures } = services;
  return anyone("POST", "/consumer/login", "login", "Log in with a user name and a password", {
    cors: PAGES_OF_APPS,
    body: LoginRequest,
    returns: LoginResponse,
    refuses: [401, 429],
    async handle({ body: { username, password }, request: { address } }) {
      const login = await passwordLogin.check({ username, password, address });
      if (!login) throw wrongCredentials(issuer);
      const { user: { id: user, scopes }, sinceMs: decidedAtMs, uses } = login;
      const audited = { actor: user, action: "user.login", target: user, address };
      const grant = { app: APP, user, scopes, decidedAtMs, audited, uses };
      const issued = await issueGrant({ ...grant, type: "login" }, services);
      if (!issued) throw wrongCredentials(issuer);
      metrics.count("gatepost_tokens_issued_total", ["login"]);
      figures.add("tokens", true);
      return { token: issued.access_token };
    },
  });
}

function wrongCredentials(issuer: string): Problem {
  return new Problem(401, "wrong_credentials", "The user name or the password is wrong.", {
    headers: bearerChallenge(issuer),
  });
}
