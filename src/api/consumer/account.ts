import { idOf, newId } from "../../base/id.ts";
import { checkErrors, conflict, Problem } from "../../base/problem.ts";
import { sha256 } from "../../base/secret.ts";
import {
  described,
  FLAG,
  named,
  object,
  oneOf,
  optional,
  pick,
  record,
  refined,
  shown,
  wholeNumber,
  withMembers,
} from "../../base/shape.ts";
import { jsonResponse } from "../../http/respond.ts";
import { NAME } from "../../oauth/app.ts";
import {
  BUILT_IN_APPS,
  type Caller,
  isBuiltInApp,
  PERSONAL_APP,
  PERSONAL_PREFIX,
} from "../../oauth/principal.ts";
import { SCOPES } from "../../oauth/scope.ts";
import { NewUser, toUserRecord, UserRecord } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAuditOfGrant } from "../../store/audit.ts";
import { revokeGrant, revokeOthersOf } from "../../store/grant_end.ts";
import { type ListedGrant, listLiveGrants } from "../../store/grants.ts";
import { insertPersonalToken, PERSONAL_TOKENS } from "../../store/personal_tokens.ts";
import { hasActiveGrant } from "../../store/subscriptions.ts";
import { findUser, replacePassword, revokeTokensOfUser } from "../../store/users.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { SECRET } from "../authorization/oauth_form.ts";
import { GrantRecord, toGrantRecord } from "../backend/grant.ts";
import { consumer, type Operation } from "../operation.ts";
import { listResponse, pageOf, pageOfItems, pagination } from "../pagination.ts";
import { loggedInUser } from "./grant.ts";

const PATH = "/consumer/token";
const MOST_SECONDS = 366 * 86_400;
const { id, name, scopes, created_at, last_used_at, expires_at } = GrantRecord.members;

const OwnTokenRecord = named("OwnToken", record({
  id,
  kind: oneOf(...BUILT_IN_APPS, "app"),
  name,
  app: optional(idOf("a")),
  scopes,
  created_at,
  last_used_at,
  expires_at,
  current: described("Whether this request came with it.", FLAG),
}));

const NewToken = named("NewPersonalToken", object({
  name: NAME,
  scopes: refined(SCOPES, (names, report) => {
    if (names.length === 0) report("Must not be empty.");
  }, { minItems: 1 }),
  expires_in: described("Seconds.", wholeNumber(1, MOST_SECONDS)),
}));

const WithToken = named("PersonalToken", withMembers(OwnTokenRecord, {
  token: described("Shown here only.", shown({ type: "string", pattern: `^${PERSONAL_PREFIX}` })),
}));

const PasswordChange = named("PasswordChange", object({
  current: SECRET,
  new: NewUser.members.password,
}));

/** The caller's account, and what can act for the caller, who is a user that has logged in here. */
export function accountOperations(
  services: Administration & Pick<Services, "tokens" | "metrics" | "passwordLogin" | "hasher">,
): Operation[] {
  const { database, tokens, metrics, passwordLogin, hasher, now, config } = services;
  const listOwn = (caller: Caller) => listLiveGrants(database, loggedInUser(caller), now());
  const findOwnUser = async (caller: Caller) =>
    found(await findUser(database, loggedInUser(caller)), "user");

  return [
    consumer("GET", PATH, "listTokens", "List what can act for the caller: logins, tokens, apps", {
      query: pagination(),
      responses: { 200: pageOf(OwnTokenRecord) },
      async handle({ query, caller }) {
        const page = pageOfItems(await listOwn(caller), query, (grant) => grant.id, "down");
        return listResponse(page, (grant) => toOwnToken(grant, caller));
      },
    }),
    consumer("POST", PATH, "makeToken", "Make a personal token, for a script; it is shown once", {
      body: NewToken,
      responses: { 201: WithToken },
      refuses: [409],
      async handle({ body: { expires_in: seconds, ...given }, caller, request }) {
        const user = loggedInUser(caller);
        checkErrors(given.scopes.flatMap((scope, index) => // no token makes one that may do more
          caller.scopes.includes(scope) ? []
            : [{ pointer: `/scopes/${index}`, detail: "Is not a scope of this token." }]
        ), "body");
        const nowMs = now();
        const grant: ListedGrant = {
          ...given,
          id: newId("g", nowMs),
          app: PERSONAL_APP,
          user,
          type: PERSONAL_APP,
          status: "active",
          refreshUntilMs: 0,
          accessUntilMs: nowMs + seconds * 1000,
          revokedAtMs: null,
          lastUsedAtMs: null,
        };
        const token = tokens.makePersonalToken(grant.id);
        const audited = { ...actorOf(caller, request), action: "grant.create", target: grant.id };
        const [inserted] = await database.write([
          insertPersonalToken(grant, sha256(token), caller, nowMs),
          insertAuditOfGrant(grant.id, audited, nowMs),
        ]);
        if (inserted !== 1) {
          throw await hasActiveGrant(database, caller.grantId)
            ? new Problem(409, "limit", `There are ${PERSONAL_TOKENS} personal tokens already.`)
            : conflict("This token was revoked.");
        }
        metrics.count("gatepost_tokens_issued_total", [PERSONAL_APP]);
        const made = { ...toOwnToken(grant, caller), token };
        return locatedResponse(201, request.path, grant.id, made);
      },
    }),
    consumer("DELETE", `${PATH}/:id`, "endToken", "End a login, a token, or what an app was given", {
      responses: { 204: undefined },
      async handle({ params, ...context }) {
        const own = await listOwn(context.caller);
        const { id: target } = found(own.find((grant) => grant.id === params.id), "token");
        const action = { action: "grant.revoke", target, always: true };
        await storeAudited(context, revokeGrant(target, now()), action, services);
        return { status: 204 };
      },
    }),
    consumer("DELETE", PATH, "endOtherTokens",
      "Sign out everywhere else: end all other tokens, browser sessions and subscriptions", {
      responses: { 204: undefined },
      async handle(context) {
        const target = loggedInUser(context.caller);
        const end = revokeOthersOf(target, context.caller.grantId, now());
        const action = { action: "grant.revoke", target, always: true };
        await storeAudited(context, end, action, services);
        return { status: 204 };
      },
    }),
    consumer("GET", "/consumer/account", "getAccount", "The caller's own account", {
      responses: { 200: UserRecord },
      handle: async ({ caller }) => jsonResponse(200, toUserRecord(await findOwnUser(caller))),
    }),
    consumer("PUT", "/consumer/account/password", "changePassword",
      "Set a new password, which ends every token and browser session of the caller", {
      body: PasswordChange,
      responses: { 204: undefined },
      refuses: [409, 429],
      async handle({ body: { current, new: wanted }, ...context }) {
        const { username } = await findOwnUser(context.caller);
        const { address } = context.request;
        const attempt = { username, password: current, address, isLoggedIn: true };
        const login = await passwordLogin.check(attempt);
        if (!login) {
          const errors = [{ pointer: "/current", detail: "Is wrong." }];
          throw new Problem(400, "wrong_password", "The current password is wrong.", { errors });
        }
        const { id: target, phc } = login.user;
        const replace = replacePassword(target, await hasher.hash(wanted), phc);
        const end = revokeTokensOfUser(target, now(), config.accessTokenTtlMs);
        const action = { action: "user.change_password", target };
        await storeAudited(context, [replace, ...end], action, services);
        return { status: 204 };
      },
    }),
  ];
}

function toOwnToken(grant: ListedGrant, { grantId }: Caller) {
  const { app, ...record } = toGrantRecord(grant);
  const kind = isBuiltInApp(app) ? { kind: app } : { kind: "app", app } as const;
  return pick(OwnTokenRecord, { ...record, ...kind, current: grant.id === grantId });
}
