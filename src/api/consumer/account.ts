import { idOf, newId } from "../../base/id.ts";
import { checkErrors, Problem } from "../../base/problem.ts";
import { sha256 } from "../../base/secret.ts";
import {
  COUNT,
  described,
  FLAG,
  manyOf,
  named,
  object,
  oneOf,
  optional,
  pick,
  record,
  refined,
  TEXT,
  URI,
} from "../../base/shape.ts";
import { jsonResponse } from "../../http/respond.ts";
import { NAME } from "../../oauth/app.ts";
import {
  BUILT_IN_APPS,
  type Caller,
  isBuiltIn,
  LOGIN_APP,
  PERSONAL_APP,
} from "../../oauth/principal.ts";
import { NewUser, toUserRecord, UserRecord } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAuditOfGrant } from "../../store/audit.ts";
import { listActingApps, withdrawConsent } from "../../store/consents.ts";
import { revokeGrant, revokeOthersOf } from "../../store/grant_end.ts";
import { type ListedGrant, listLiveGrants } from "../../store/grants.ts";
import { insertPersonalToken, PERSONAL_TOKENS } from "../../store/personal_tokens.ts";
import { findUser, hasPassword, replacePassword } from "../../store/users.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { SECRET } from "../authorization/oauth_form.ts";
import { GrantRecord, toGrantRecord } from "../backend/grant.ts";
import { consumer, type Operation } from "../operation.ts";
import { listResponse, pageOf, pageOfItems, pagination } from "../pagination.ts";

const APPS = "/consumer/grant";
const TOKENS = "/consumer/token";
const ACCOUNT = "/consumer/account";
const MOST_SECONDS = 366 * 86_400;

const ActingAppRecord = named(
  "ActingApp",
  record({ id: idOf("a"), name: TEXT, url: URI, scopes: manyOf(TEXT) }),
);

const { user, app, type, status, revoked_at, ...shared } = GrantRecord.members;
const OwnTokenRecord = named("OwnToken", record({
  ...shared,
  kind: oneOf(...BUILT_IN_APPS, "app"),
  app: optional(idOf("a")),
  current: described("Whether this request came with it.", FLAG),
}));

const NewToken = named("NewPersonalToken", object({
  name: NAME,
  scopes: shared.scopes,
  expires_in: described("Seconds.", refined(COUNT, (seconds, report) => {
    if (Number.isInteger(seconds) && seconds > 0 && seconds <= MOST_SECONDS) return;
    report(`Must be 1 to ${MOST_SECONDS}.`);
  }, { minimum: 1, maximum: MOST_SECONDS })),
}));
const UNUSED = { refreshUntilMs: 0, revokedAtMs: null, lastUsedAtMs: null } as const;

const WithToken = named("PersonalToken", record({
  ...OwnTokenRecord.members,
  token: described("Shown here only.", TEXT),
}));

const { password } = NewUser.members;
const PasswordChange = named("PasswordChange", object({ current: SECRET, new: password }));

/** A user's own account and what may act for it, for a user that has logged in here. */
export function accountOperations(
  services: Administration & Pick<Services, "tokens" | "passwordLogin" | "hasher">,
): Operation[] {
  const { database, tokens, passwordLogin, hasher, now, config: { accessTokenTtlMs } } = services;
  const findOwnUser = async (caller: Caller) =>
    found(await findUser(database, loggedInUser(caller)), "user");
  const listOwn = (caller: Caller) => listLiveGrants(database, loggedInUser(caller), now());

  return [
    consumer("GET", APPS, "listActingApps", "List the apps that may act for the caller", {
      query: pagination(),
      responses: { 200: pageOf(ActingAppRecord) },
      async handle({ query, caller }) {
        const apps = await listActingApps(database, loggedInUser(caller), now());
        return listResponse(pageOfItems(apps, query, (app) => app.id, "down"), (app) => app);
      },
    }),
    consumer("DELETE", `${APPS}/:id`, "withdrawGrant",
      "Withdraw from an app what it may do for the caller", {
      responses: { 204: undefined },
      async handle({ params: { id: app }, ...context }) {
        const user = loggedInUser(context.caller);
        found((await listActingApps(database, user, now(), app))[0], "grant");
        const end = { reason: "grant withdrawn" };
        const withdraw = withdrawConsent(user, app, end, now(), accessTokenTtlMs);
        const action = { action: "grant.withdraw", target: app };
        await storeAudited(context, withdraw, action, services);
        return { status: 204 };
      },
    }),
    consumer("GET", TOKENS, "listTokens", "List logins, personal tokens and grants of apps", {
      query: pagination(),
      responses: { 200: pageOf(OwnTokenRecord) },
      async handle({ query, caller }) {
        const page = pageOfItems(await listOwn(caller), query, (grant) => grant.id, "down");
        return listResponse(page, (grant) => toOwnToken(grant, caller));
      },
    }),
    consumer("POST", TOKENS, "makeToken", "Make a personal token, for a script; it is shown once", {
      body: NewToken,
      responses: { 201: WithToken },
      refuses: [409],
      async handle({ body: { expires_in: seconds, ...given }, caller, request }) {
        const user = loggedInUser(caller);
        const isOwn = given.scopes.every((scope) => caller.scopes.includes(scope));
        const error = { pointer: "/scopes", detail: "Must be scopes that this token has." };
        checkErrors(isOwn ? [] : [error], "body");
        const nowMs = now();
        const target = newId("g", nowMs);
        const accessUntilMs = nowMs + seconds * 1000;
        const of = { id: target, user, app: PERSONAL_APP, type: PERSONAL_APP, accessUntilMs };
        const grant: ListedGrant = { ...UNUSED, ...given, ...of, status: "active" };
        const token = tokens.makePersonalToken(target);
        const audited = { ...actorOf(caller, request), action: "grant.create", target };
        const [inserted] = await database.write([
          insertPersonalToken(grant, sha256(token), caller, nowMs),
          insertAuditOfGrant(target, audited, nowMs),
        ]);
        if (inserted !== 1) { // or what it depends on has just ended
          throw new Problem(409, "limit", `There are ${PERSONAL_TOKENS} personal tokens already.`);
        }
        return locatedResponse(201, request.path, target, { ...toOwnToken(grant, caller), token });
      },
    }),
    consumer("DELETE", `${TOKENS}/:id`, "endToken", "End one of those, with all its tokens", {
      responses: { 204: undefined },
      async handle({ params, ...context }) {
        const own = await listOwn(context.caller);
        const { id: target } = found(own.find((grant) => grant.id === params.id), "token");
        const action = { action: "grant.revoke", target };
        await storeAudited(context, revokeGrant(target, now()), action, services);
        return { status: 204 };
      },
    }),
    consumer("DELETE", TOKENS, "endOtherTokens",
      "Sign out everywhere else: end all other tokens, browser sessions and subscriptions", {
      responses: { 204: undefined },
      async handle(context) {
        const target = loggedInUser(context.caller);
        const end = revokeOthersOf(target, context.caller.grantId, now());
        const action = { action: "grant.revoke", target };
        await storeAudited(context, end, action, services);
        return { status: 204 };
      },
    }),
    consumer("GET", ACCOUNT, "getAccount", "The caller's own account", {
      responses: { 200: UserRecord },
      handle: async ({ caller }) => jsonResponse(200, toUserRecord(await findOwnUser(caller))),
    }),
    consumer("PUT", `${ACCOUNT}/password`, "changePassword",
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
        const newPhc = await hasher.hash(wanted);
        const replace = replacePassword(target, newPhc, hasPassword(phc), now(), accessTokenTtlMs);
        const action = { action: "user.change_password", target };
        await storeAudited(context, replace, action, services);
        return { status: 204 };
      },
    }),
  ];
}

/** The user of a login token; throws Problem 403: others must not learn of others, nor end them. */
export function loggedInUser({ sub, clientId }: Caller): string {
  if (clientId === LOGIN_APP) return sub;
  throw new Problem(403, "login_only", "Only a token of the login endpoint may do this.");
}

function toOwnToken(grant: ListedGrant, { grantId }: Caller) {
  const { app, ...shared } = toGrantRecord(grant);
  const kind = isBuiltIn(app) ? { kind: app } : { kind: "app", app } as const;
  return pick(OwnTokenRecord, { ...shared, ...kind, current: grant.id === grantId });
}
