import { idOf, idTimeMs, newId } from "../../base/id.ts";
import { checkErrors, conflict, Problem } from "../../base/problem.ts";
import {
  described,
  FLAG,
  named,
  nullable,
  object,
  oneOf,
  optional,
  pick,
  record,
  refined,
  shown,
  TEXT,
  wholeNumber,
  withMembers,
} from "../../base/shape.ts";
import { TIME, toTime } from "../../base/time.ts";
import { sha256 } from "../../base/secret.ts";
import { NAME } from "../../oauth/app.ts";
import { PERSONAL_PREFIX } from "../../oauth/personal_token.ts";
import { type Caller, isBuiltInApp, PERSONAL_APP } from "../../oauth/principal.ts";
import { SCOPES } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAuditOfGrant } from "../../store/audit.ts";
import { revokeGrant, revokeOthersOf } from "../../store/grant_end.ts";
import { listOwnGrants, type OwnGrant } from "../../store/own_grants.ts";
import { insertPersonalToken, PERSONAL_TOKENS } from "../../store/personal_tokens.ts";
import { hasActiveGrant } from "../../store/subscriptions.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { consumer, type Operation } from "../operation.ts";
import { listResponse, pageOf, pageOfItems, pagination } from "../pagination.ts";
import { loggedInUser } from "./logged_in_user.ts";

const PATH = "/consumer/token";
const MOST_SECONDS = 366 * 86_400;

const OwnTokenRecord = named("OwnToken", record({
  id: idOf("g"),
  kind: oneOf("login", "personal", "app"),
  name: optional(described("Of the personal token, or of the app.", TEXT)),
  app: optional(idOf("a")),
  scopes: SCOPES,
  created_at: TIME,
  last_used_at: described("To within two minutes.", nullable(TIME)),
  expires_at: TIME,
  current: described("Whether this request came with it.", FLAG),
}));

const NewToken = named("NewPersonalToken", object({
  name: NAME,
  scopes: refined(SCOPES, (scopes, report) => {
    if (scopes.length === 0) report("Must not be empty.");
  }, { minItems: 1 }),
  expires_in: described("Seconds.", wholeNumber(1, MOST_SECONDS)),
}));

const WithToken = named("PersonalTokenWithText", withMembers(OwnTokenRecord, {
  token: described(
    "Shown here only.",
    shown<string>({ type: "string", pattern: `^${PERSONAL_PREFIX}` }),
  ),
}));

/** /consumer/token: whatever can act for the caller, who is a user that has logged in here. */
export function ownTokenOperations(
  services: Administration & Pick<Services, "tokens" | "metrics">,
): Operation[] {
  const { database, tokens, metrics, now } = services;

  return [
    consumer("GET", PATH, "listTokens", "List what can act for the caller: logins, tokens, apps", {
      query: pagination(),
      responses: { 200: pageOf(OwnTokenRecord) },
      async handle({ query, caller }) {
        const grants = await listOwnGrants(database, loggedInUser(caller), now());
        const page = pageOfItems(grants, query, ({ id }) => id, "down");
        return listResponse(page, (grant) => toRecord(grant, caller));
      },
    }),
    consumer("POST", PATH, "makeToken", "Make a personal token, for a script; it is shown once", {
      body: NewToken,
      responses: { 201: WithToken },
      refuses: [409],
      async handle({ body: { name, scopes, expires_in: seconds }, caller, request }) {
        loggedInUser(caller);
        checkScopes(scopes, caller);
        const nowMs = now();
        const id = newId("g", nowMs);
        const token = tokens.makePersonalToken(id);
        const grant = { id, name, scopes, hash: sha256(token), untilMs: nowMs + seconds * 1000 };
        const audited = { ...actorOf(caller, request), action: "grant.create", target: id };
        const [inserted] = await database.write([
          insertPersonalToken(grant, caller, nowMs),
          insertAuditOfGrant(id, audited, nowMs),
        ]);
        if (inserted !== 1) {
          throw await hasActiveGrant(database, caller.grantId)
            ? new Problem(409, "limit", `There are ${PERSONAL_TOKENS} personal tokens already.`)
            : conflict("This token was revoked.");
        }
        metrics.count("gatepost_tokens_issued_total", [PERSONAL_APP]);
        const record = toRecord({ ...grant, app: PERSONAL_APP, lastUsedAtMs: null }, caller);
        return locatedResponse(201, request.path, id, { ...record, token });
      },
    }),
    consumer("DELETE", `${PATH}/:id`, "endToken", "End a login, a token, or what an app was given", {
      responses: { 204: undefined },
      async handle({ params, ...context }) {
        const grants = await listOwnGrants(database, loggedInUser(context.caller), now());
        const { id } = found(grants.find((grant) => grant.id === params.id), "token");
        const action = { action: "grant.revoke", target: id, always: true };
        await storeAudited(context, revokeGrant(id, now()), action, services);
        return { status: 204 };
      },
    }),
    consumer("DELETE", PATH, "endOtherTokens",
      "Sign out everywhere else: end all other tokens, browser sessions and subscriptions", {
      responses: { 204: undefined },
      async handle(context) {
        const user = loggedInUser(context.caller);
        const end = revokeOthersOf(user, context.caller.grantId, now());
        const action = { action: "grant.revoke", target: user, always: true };
        await storeAudited(context, end, action, services);
        return { status: 204 };
      },
    }),
  ];
}

/** No token makes one that may do more. */
function checkScopes(scopes: readonly string[], caller: Caller): void {
  const errors = scopes.flatMap((scope, index) =>
    caller.scopes.includes(scope) ? [] : [{ pointer: `/scopes/${index}`, detail: "Is not yours." }]
  );
  checkErrors(errors, "body");
}

function toRecord({ app, name, ...grant }: OwnGrant, { grantId }: Caller) {
  const { id, lastUsedAtMs, untilMs } = grant;
  const kind = isBuiltInApp(app) ? app : "app";
  return pick(OwnTokenRecord, {
    ...grant,
    kind,
    name: name ?? undefined,
    app: kind === "app" ? app : undefined,
    created_at: toTime(idTimeMs(id)),
    last_used_at: lastUsedAtMs === null ? null : toTime(lastUsedAtMs),
    expires_at: toTime(untilMs),
    current: id === grantId,
  });
}
