import { openFields } from "../../base/fields.ts";
import { MAX_FORM_BYTES } from "../../base/form.ts";
import { newId } from "../../base/id.ts";
import { Problem } from "../../base/problem.ts";
import { LOGIN_APP } from "../../oauth/principal.ts";
import type { Database } from "../../database/database.ts";
import { insertGrant } from "../../store/grants.ts";
import type { Revocations } from "../../store/revocations.ts";
import type { TokenIssuer } from "../authorization/token_issuer.ts";
import { bearerChallenge } from "../bearer.ts";
import { readJson } from "../../http/body.ts";
import type { PasswordLogin } from "../password_login.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { PublicRoute } from "../route.ts";

/** What the login endpoint works with. */
export interface LoginOptions {
  readonly database: Database;
  readonly revocations: Revocations;
  readonly passwordLogin: PasswordLogin;
  readonly tokens: TokenIssuer;
  readonly issuer: string;
  readonly now: () => number;
  /** Told of every token that is answered, for the metrics. */
  readonly observe?: (type: "login") => void;
  readonly maxBodyBytes: number;
}

/** POST /consumer/login: a user name and a password for an access token with all the user's scopes. */
export function loginRoute(options: LoginOptions): PublicRoute {
  const { database, passwordLogin, tokens, now } = options;
  const maxBytes = Math.min(options.maxBodyBytes, MAX_FORM_BYTES); // no login is larger
  return {
    method: "POST",
    path: "/consumer/login",
    access: "public",
    cors: true,
    summary: "Log in with a user name and a password",
    async handle({ request }) {
      const fields = openFields(await readJson(request, maxBytes));
      const username = fields.requiredText("username");
      const password = fields.requiredText("password");
      fields.finish("login", { ignoreUnknown: true });

      const outcome = await passwordLogin.check({ username, password, address: request.address });
      if (outcome.kind === "throttled") {
        throw new Problem(429, "throttled", "Too many failed logins; try again later.", {
          headers: { "Retry-After": String(outcome.retryAfterSeconds) },
        });
      }
      if (outcome.kind === "wrong") throw wrongCredentials(options.issuer);

      const { user, sinceMs } = outcome;
      const nowMs = now();
      const id = newId("g", nowMs);
      const { token, expiresAtMs } = tokens.accessToken({
        sub: user.id,
        clientId: LOGIN_APP,
        grantId: id,
        scopes: user.scopes,
        issuedAtMs: nowMs,
      });
      const { address } = request;
      const audited = { actor: user.id, action: "user.login", target: user.id, address };
      const stored = await insertGrant(database, {
        id,
        app: LOGIN_APP,
        user: user.id,
        type: "login",
        scopes: user.scopes,
        refresh: undefined,
        refreshUntilMs: 0,
        accessUntilMs: expiresAtMs,
        decidedAtMs: sinceMs,
      }, audited, options.revocations);
      if (!stored) throw wrongCredentials(options.issuer);
      options.observe?.("login");
      return jsonResponse(200, { token }, NO_STORE);
    },
  };
}

function wrongCredentials(issuer: string): Problem {
  return new Problem(401, "wrong_credentials", "The user name or the password is wrong.", {
    headers: bearerChallenge(issuer),
  });
}
