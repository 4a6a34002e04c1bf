import { recordOf } from "../../base/fields.ts";
import { idOf } from "../../base/id.ts";
import { described, FLAG, named, oneOf, optional, record, TEXT, URI } from "../../base/shape.ts";
import { BUILT_IN_APPS, type Caller, isBuiltIn } from "../../oauth/principal.ts";
import { SCOPES } from "../../oauth/scope.ts";
import { SessionRecord, toUserRecord, UserRecord } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { listActingApps } from "../../store/consents.ts";
import { revokeOthersOf } from "../../store/grant_end.ts";
import { type ListedGrant, listLiveGrants } from "../../store/grants.ts";
import { isCallerActive } from "../../store/personal_tokens.ts";
import { listSessions, sessionId } from "../../store/sessions.ts";
import { findUser } from "../../store/users.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { grantFields, GrantRecord } from "../backend/grant.ts";
import { backend, consumer, type Operation } from "../operation.ts";
import { listingOf } from "../pagination.ts";
import { checkGivesBackend } from "../recent_login.ts";
import {
  changePassword,
  endOwnGrant,
  endSession,
  endSessions,
  loggedInUser,
  makePersonalToken,
  NewToken,
  PasswordChange,
  withdrawApp,
} from "./account_acts.ts";

const APPS = "/consumer/grant";
const TOKENS = "/consumer/token";
const SESSIONS = "/consumer/session";
const ACCOUNT = "/consumer/account";

const ActingAppRecord =
  named("ActingApp", record({ id: idOf("a"), name: TEXT, url: URI, scopes: SCOPES }));
const { user, type, status, revoked_at, ...ofGrant } = GrantRecord.members;
const OwnTokenRecord = named("OwnToken", record({
  ...ofGrant,
  kind: oneOf(...BUILT_IN_APPS, "app"),
  app: optional(idOf("a")),
  current: described("Whether this request used this token.", FLAG),
}));
const toOwnTokenRecord = recordOf(OwnTokenRecord);

const toSessionRecord = recordOf(SessionRecord);

const WithToken = named("PersonalToken", record({
  ...OwnTokenRecord.members,
  token: described("Shown here only.", TEXT),
}));

/** The caller's own account, apps, tokens and sessions; only for the user's own login. */
export function accountOperations(
  services: Administration & Pick<Services, "tokens" | "passwordLogin" | "hasher" | "sessions">,
): Operation[] {
  const { database, now, sessions } = services;

  return [
    consumer("GET", APPS, "listActingApps", "List the apps that may act for the caller",
      listingOf(ActingAppRecord, (app) => app.id, "down", ({ caller }) =>
        listActingApps(database, loggedInUser(caller), now()))),
    consumer("DELETE", `${APPS}/:id`, "withdrawGrant",
      "Withdraw what an app may do for the caller", {
      handle: ({ params, ...context }) => withdrawApp(context, params.id, services),
    }),
    consumer("GET", TOKENS, "listTokens", "List logins, personal tokens and grants of apps",
      listingOf(OwnTokenRecord, (token) => token.id, "down", async ({ caller }) => {
        const own = await listLiveGrants(database, loggedInUser(caller), now());
        return own.map((grant) => toOwnToken(grant, caller));
      })),
    consumer("POST", TOKENS, "makeToken", "Make a personal token, for a script; it is shown once", {
      body: NewToken,
      responses: { 201: WithToken },
      refuses: [409],
      async handle({ body, ...context }) {
        const { caller, request } = context;
        await checkGivesBackend(caller, body, undefined, services);
        const isLoggedIn = isCallerActive(caller);
        const { grant, token } = await makePersonalToken(context, body, isLoggedIn, services);
        const shown = { ...toOwnToken(grant, caller), token };
        return locatedResponse(201, request.path, grant.id, shown);
      },
    }),
    consumer("DELETE", `${TOKENS}/:id`, "endToken", "End a login, personal token or app's grant", {
      handle: ({ params, ...context }) => endOwnGrant(context, params.id, services),
    }),
    consumer("DELETE", TOKENS, "endOtherTokens",
      "Sign out everywhere else: end all other tokens, browser sessions and subscriptions", {
      async handle(context) {
        const target = loggedInUser(context.caller);
        const end = revokeOthersOf(target, context.caller.grantId, now());
        await storeAudited(context, "grant.revoke", target, end, services);
      },
    }),
    consumer("GET", ACCOUNT, "getAccount", "The caller's own account", {
      returns: UserRecord,
      handle: async ({ caller }) =>
        toUserRecord(found(await findUser(database, loggedInUser(caller)), "user")),
    }),
    consumer("PUT", `${ACCOUNT}/password`, "changePassword",
      "Set a new password, which ends every token and browser session of the caller", {
      body: PasswordChange,
      refuses: [409, 429],
      async handle({ body, ...context }) {
        await changePassword(context, body, services);
      },
    }),
    consumer("GET", SESSIONS, "listSessions", "List the browsers in which the caller has logged in",
      listingOf(SessionRecord, sessionKey, "down", async ({ caller, request }) => {
        const current = sessionId((await sessions.open(request)).hash);
        const own = await listSessions(database, loggedInUser(caller), now());
        return own.map((each) => toSessionRecord({ ...each, current: each.id === current }));
      })),
    consumer("DELETE", `${SESSIONS}/:id`, "endSession", "Sign out in one browser", {
      handle: ({ params, ...context }) => endSession(context, params.id, services),
    }),
    consumer("DELETE", SESSIONS, "endSessions", "Sign out in every browser", {
      handle: (context) => endSessions(context, undefined, services),
    }),
  ];
}

/** GET /backend/user/{id}/session: the browsers of any user. */
export function managedSessionOperation(
  { database, now }: Pick<Services, "database" | "now">,
): Operation {
  return backend("GET", "/backend/user/:id/session", "listSessionsOf",
    "List the browsers in which a user has logged in",
    listingOf(SessionRecord, sessionKey, "down", async ({ params: { id = "" } }) => {
      found(await findUser(database, id), "user");
      return (await listSessions(database, id, now())).map(toSessionRecord);
    }));
}

const sessionKey = ({ created_at, id }: ReturnType<typeof toSessionRecord>) =>
  `${created_at} ${id}`;

function toOwnToken(grant: ListedGrant, { grantId }: Caller) {
  const { id, app } = grant;
  const kind = isBuiltIn(app) ? { kind: app, app: null } : { kind: "app", app } as const;
  return toOwnTokenRecord({ ...grantFields(grant), ...kind, current: id === grantId });
}
