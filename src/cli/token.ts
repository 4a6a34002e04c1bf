import { ADMIN } from "../app/first_user.ts";
import { newId } from "../base/id.ts";
import { createJwtSigner, MAX_JWT_LENGTH } from "../base/jwt.ts";
import { parseShape, record } from "../base/shape.ts";
import { toTime } from "../base/time.ts";
import { ACCESS_TOKEN_TYPE, accessTokenClaims } from "../oauth/claims.ts";
import { BACKEND_SCOPE, LOGIN_APP } from "../oauth/principal.ts";
import { SCOPES } from "../oauth/scope.ts";
import { CLI_ACTOR } from "../store/audit.ts";
import { insertGrant } from "../store/grants.ts";
import { issuerOf } from "./backend.ts";
import type { Command } from "./command.ts";
import { Failure, UsageError } from "./failure.ts";
import { splitNames } from "./resource.ts";
import { findUserId } from "./user.ts";

const TTL_MS = 10 * 60_000;

export const TOKEN_COMMAND: Command = {
  words: ["token"],
  purpose: "Print an administrator's token for 10 minutes",
  options: {
    scope: {
      value: '"A B"',
      meaning: "what it may do, of what the user may",
      default: BACKEND_SCOPE,
      isRepeatable: true,
    },
    user: { value: "NAME", meaning: "the name or id of its user", default: ADMIN },
  },
  details: [
    "It is signed with the database's own key, as by the server, for the issuer that " +
      "GATEPOST_BASE_URL names, or GATEPOST_HOST and GATEPOST_PORT where that is not set: give " +
      "both programs the same. It is audited, and `grant revoke` ends it. For example: " +
      'curl -H "Authorization: Bearer $(gatepost token)" …/backend/cronjob',
  ],
  examples: ["gatepost token", 'gatepost token --user ops --scope "backend consumer"'],
  async run(context) {
    const { config, values } = context;
    if (!config.authorizationServer) {
      throw new Failure("GATEPOST_AUTHORIZATION_SERVER is off: the server accepts no such token.");
    }
    if (config.baseUrl === undefined && config.port === 0) {
      throw new Failure("With GATEPOST_PORT=0 a token needs GATEPOST_BASE_URL, its issuer.");
    }
    const scope = splitNames(values.list("scope")) ?? [BACKEND_SCOPE];
    const { scope: scopes } = parseShape(record({ scope: SCOPES }), { scope }, "command line");
    if (scopes.length === 0) throw new UsageError("token --scope needs the name of a scope");
    const { database, keys } = await context.openBackend();
    const user = await findUserId(context, values.text("user") ?? ADMIN);
    const nowMs = Date.now();
    const grantId = newId("g", nowMs);
    const { claims, expiresAtMs } = accessTokenClaims({
      issuer: issuerOf(config),
      sub: user,
      clientId: LOGIN_APP,
      grantId,
      scopes,
      issuedAtMs: nowMs,
      ttlMs: Math.min(TTL_MS, config.accessTokenTtlMs),
    });
    const token = createJwtSigner(ACCESS_TOKEN_TYPE, keys.signing())(claims);
    if (token.length > MAX_JWT_LENGTH) throw new Failure("The scopes do not fit into one token.");
    const isStored = await insertGrant(database, {
      id: grantId,
      app: LOGIN_APP,
      user,
      type: "login",
      scopes,
      refresh: undefined,
      refreshUntilMs: 0,
      accessUntilMs: expiresAtMs,
    }, { actor: CLI_ACTOR, action: "user.token", target: user, address: null });
    if (!isStored) {
      throw new Failure(`The user is disabled, or may not do all of: ${scopes.join(" ")}`);
    }
    context.print({ token, scopes, expires_at: toTime(expiresAtMs) }, () => token);
  },
};
