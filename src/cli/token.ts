import { createTokenIssuer } from "../api/authorization/token_issuer.ts";
import { ADMIN } from "../app/first_user.ts";
import { newId } from "../base/id.ts";
import { randomBytes } from "../base/secret.ts";
import { parseShape, record } from "../base/shape.ts";
import { toTime } from "../base/time.ts";
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
  purpose: "Print an administrator's token, valid for 10 minutes",
  options: {
    scope: {
      value: '"A B"',
      meaning: "the token's scopes, which the user must have",
      default: BACKEND_SCOPE,
      isRepeatable: true,
    },
    user: { value: "NAME", meaning: "the name or id of the token's user", default: ADMIN },
  },
  details: [
    "It is signed with the server's key. Its issuer is GATEPOST_BASE_URL or, if that is not set, " +
      "made of GATEPOST_HOST and GATEPOST_PORT: give this program the server's values. It is " +
      "audited, and `grant revoke` revokes it. For example: " +
      'curl -H "Authorization: Bearer $(gatepost token)" …/backend/cronjob',
  ],
  examples: ["gatepost token", 'gatepost token --user ops --scope "backend consumer"'],
  async run(context) {
    const { config, values } = context;
    if (!config.authorizationServer) {
      throw new Failure("GATEPOST_AUTHORIZATION_SERVER is off: the server accepts no such token.");
    }
    if (config.baseUrl === undefined && config.port === 0) {
      throw new Failure("With GATEPOST_PORT=0, set GATEPOST_BASE_URL: it is the token's issuer.");
    }
    const scope = splitNames(values.list("scope")) ?? [BACKEND_SCOPE];
    const { scope: scopes } = parseShape(record({ scope: SCOPES }), { scope }, "command line");
    if (scopes.length === 0) throw new UsageError("token --scope needs at least one scope");
    const { database, keys } = await context.openBackend();
    const user = await findUserId(context, values.text("user") ?? ADMIN);
    const nowMs = Date.now();
    const grant = { id: newId("g", nowMs), user, scopes };
    const tokens = createTokenIssuer({
      issuer: issuerOf(config),
      keys,
      config: { ...config, accessTokenTtlMs: Math.min(TTL_MS, config.accessTokenTtlMs) },
      pageKey: randomBytes(32), // unused: only opaque tokens need it
    });
    const { issued, stored } = tokens.makeTokens(grant, { id: LOGIN_APP, grants: [] }, nowMs);
    const audited = { actor: CLI_ACTOR, action: "user.token", target: user, address: null };
    const parties = { app: LOGIN_APP, type: "login" };
    if (!await insertGrant(database, { ...grant, ...parties, ...stored }, audited)) {
      throw new Failure(`The user is disabled, or lacks one of these scopes: ${scopes.join(" ")}`);
    }
    const { access_token: token } = issued;
    const expires_at = toTime(stored.accessUntilMs);
    context.print({ token, scopes, expires_at }, () => token);
  },
};
