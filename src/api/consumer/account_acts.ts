import { newId } from "../../base/id.ts";
import { checkErrors, conflict, Problem } from "../../base/problem.ts";
import { sha256 } from "../../base/secret.ts";
import { COUNT, described, type Infer, named, object, refined } from "../../base/shape.ts";
import type { Sql } from "../../database/sql.ts";
import { NAME } from "../../oauth/app.ts";
import { type Caller, isOwnLogin, PERSONAL_APP } from "../../oauth/principal.ts";
import { SCOPES } from "../../oauth/scope.ts";
import { NewUser } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAuditOfGrant } from "../../store/audit.ts";
import { listActingApps, withdrawConsent } from "../../store/consents.ts";
import { revokeGrant } from "../../store/grant_end.ts";
import { type ListedGrant, listLiveGrants } from "../../store/grants.ts";
import { insertPersonalToken, PERSONAL_TOKENS } from "../../store/personal_tokens.ts";
import { endSessionsOf, listSessions } from "../../store/sessions.ts";
import { findUser, hasPassword, replacePassword } from "../../store/users.ts";
import {
  type Actor,
  type Administration,
  changeAudited,
  found,
  storeAudited,
} from "../administration.ts";
import { SECRET } from "../authorization/oauth_form.ts";

const MAX_SECONDS = 366 * 86_400;

export const NewToken = named("NewPersonalToken", object({
  name: NAME,
  scopes: SCOPES,
  expires_in: described("Seconds.", refined(COUNT, (seconds, report) => {
    if (Number.isInteger(seconds) && seconds > 0 && seconds <= MAX_SECONDS) return;
    report(`Must be 1 to ${MAX_SECONDS}.`);
  }, { minimum: 1, maximum: MAX_SECONDS })),
}));

const { password } = NewUser.members;
export const PasswordChange = named("PasswordChange", object({ current: SECRET, new: password }));

/** Returns the user of a token of the user's own login; throws Problem 403 for any other token. */
export function loggedInUser({ sub, clientId }: Actor["caller"]): string {
  if (isOwnLogin(clientId)) return sub;
  const detail = "Only a token of the user's own login may do this.";
  throw new Problem(403, "login_only", detail, { challenge: {} });
}

/** Withdraws all that an app may do for the user; throws Problem 404 if that is nothing. */
export async function withdrawApp(actor: Actor, app: string, services: Administration) {
  const { database, now, config: { accessTokenTtlMs } } = services;
  const user = loggedInUser(actor.caller);
  found((await listActingApps(database, user, now(), app))[0], "grant");
  const end = { reason: "grant withdrawn" };
  const withdraw = withdrawConsent(user, app, end, now(), accessTokenTtlMs);
  await storeAudited(actor, "grant.withdraw", app, withdraw, services);
}

/**
 * Makes a personal token, which is shown once. Throws Problem 400 for a scope that the caller does
 * not have; 409 if the user lost a scope, has too many tokens, or `isLoggedIn` no longer holds.
 *
 * @param isLoggedIn holds at commit while the user's login is valid
 */
export async function makePersonalToken(
  { caller, request }: { readonly caller: Pick<Caller, "sub" | "clientId" | "scopes"> } & Actor,
  { expires_in: seconds, ...given }: Infer<typeof NewToken>,
  isLoggedIn: Sql,
  { database, tokens, now }: Pick<Services, "database" | "now"> & {
    readonly tokens: Pick<Services["tokens"], "makePersonalToken">;
  },
) {
  const user = loggedInUser(caller);
  if (!given.scopes.every((scope) => caller.scopes.includes(scope))) {
    checkErrors([{ pointer: "/scopes", detail: "Must be scopes that this token has." }], "body");
  }
  const nowMs = now();
  const id = newId("g", nowMs);
  const grant: ListedGrant = {
    ...given, id, user, app: PERSONAL_APP, type: PERSONAL_APP, status: "active",
    accessUntilMs: nowMs + seconds * 1000, refreshUntilMs: 0, revokedAtMs: null, lastUsedAtMs: null,
  };
  const token = tokens.makePersonalToken(id);
  const audited = { ...actorOf(caller, request), action: "grant.create", target: id };
  const [inserted] = await database.write([
    insertPersonalToken(grant, user, sha256(token), isLoggedIn, nowMs),
    insertAuditOfGrant(id, audited, nowMs),
  ]);
  if (inserted === 1) return { grant, token };
  const own = await listLiveGrants(database, user, nowMs);
  if (own.filter(({ app }) => app === PERSONAL_APP).length < PERSONAL_TOKENS) {
    throw conflict("Your login has just ended, or you have just lost a scope.");
  }
  throw new Problem(409, "limit", `There are ${PERSONAL_TOKENS} personal tokens already.`);
}

/** Ends one of the user's grants with all its tokens; throws Problem 404 if there is none. */
export async function endOwnGrant(actor: Actor, id: string, services: Administration) {
  const { database, now } = services;
  const own = await listLiveGrants(database, loggedInUser(actor.caller), now());
  const { id: target } = found(own.find((grant) => grant.id === id), "token");
  await storeAudited(actor, "grant.revoke", target, revokeGrant(target, now()), services);
}

/** Ends one of the user's browser sessions; throws Problem 404 if there is none. */
export async function endSession(actor: Actor, id: string, services: Administration) {
  const { database, now } = services;
  const user = loggedInUser(actor.caller);
  // Checked first, since endSessionsOf ends the tokens of the user's consoles in any case.
  found((await listSessions(database, user, now(), id))[0], "session");
  const end = endSessionsOf(user, now(), { id });
  await storeAudited(actor, "session.end", id, end, services);
}

/** Ends all of the user's browser sessions but the one whose id is `spared`. */
export async function endSessions(
  actor: Actor,
  spared: string | undefined,
  services: Administration,
) {
  const target = loggedInUser(actor.caller);
  const end = endSessionsOf(target, services.now(), { spared });
  await storeAudited(actor, "session.end", target, end, services);
}

/**
 * Sets a new password, with the throttles of a login. Returns the time of the change, which ends
 * all tokens and browser sessions made until then. Throws Problem 400 `wrong_password`.
 */
export async function changePassword(
  actor: Actor,
  { current, new: wanted }: Infer<typeof PasswordChange>,
  services: Administration & Pick<Services, "passwordLogin" | "hasher">,
): Promise<number> {
  const { database, passwordLogin, hasher, now, config: { accessTokenTtlMs } } = services;
  const { username } = found(await findUser(database, loggedInUser(actor.caller)), "user");
  const { address } = actor.request;
  const attempt = { username, password: current, address, isLoggedIn: true };
  const login = await passwordLogin.check(attempt);
  if (!login) {
    const errors = [{ pointer: "/current", detail: "Is wrong." }];
    throw new Problem(400, "wrong_password", "The current password is wrong.", { errors });
  }
  const { id: target, phc } = login.user;
  const newPhc = await hasher.hash(wanted);
  const nowMs = now();
  const replace = replacePassword(target, newPhc, hasPassword(phc), nowMs, accessTokenTtlMs);
  await changeAudited(actor, "user.change_password", target, replace, services);
  return nowMs;
}
