import { newId } from "../base/id.ts";
import { conflict, invalid, Problem } from "../base/problem.ts";
import { newSecret, sha256 } from "../base/secret.ts";
import { type Infer, named, object, optional, type Shape } from "../base/shape.ts";
import type { Database } from "../database/database.ts";
import {
  type App,
  AppChange,
  AppRecord,
  AppSecret,
  AppWithSecret,
  changeApp,
  newApp,
  NewApp,
  NewAppSecret,
  toAppRecord,
} from "../oauth/app.ts";
import type { Caller } from "../oauth/principal.ts";
import {
  APP_LIST,
  deleteApp,
  findApp,
  insertApp,
  replaceAppSecret,
  revokeTokensOfApp,
  updateApp,
} from "../store/apps.ts";
import { deleteCodesOf } from "../store/codes.ts";
import { forgetConsentsOf } from "../store/consents.ts";
import { revokeGrantsWithScopes } from "../store/grant_end.ts";
import { listPart } from "../store/list.ts";
import { findUser } from "../store/users.ts";
import {
  type Actor,
  type Administration,
  changeAudited,
  changeFresh,
  found,
  locatedResponse,
  storeAudited,
} from "./administration.ts";
import { loggedInUser } from "./consumer/account_acts.ts";
import { backend, consumer, type Operation, type Side } from "./operation.ts";
import { pageOf, pagination, toPageRecord } from "./pagination.ts";
import { checkGivesBackend, checkRecentLogin } from "./recent_login.ts";

const OLD_SECRET_MS = 24 * 60 * 60_000;

const { name, url, redirect_uris } = AppChange.members;
/** Owners can change neither what their apps may do, nor whether consent is skipped. */
const OwnAppChange = named("OwnAppChange", object({ name, url, redirect_uris }));

/** `{side}/app`: the OAuth clients that the caller owns (/consumer), or all (/backend). */
export function appOperations(side: Side, services: Administration): Operation[] {
  const { database } = services;
  const isOwn = side === "/consumer";
  const [make, own] = isOwn ? [consumer, "Own"] as const : [backend, ""] as const;
  const filters: Partial<typeof APP_LIST.filters> = isOwn ? {} : APP_LIST.filters;
  const change: Shape<Infer<typeof AppChange>> = isOwn ? OwnAppChange : AppChange;
  const [path, item] = [`${side}/app`, `${side}/app/:client_id`] as const;

  const ownerOf = (caller: Caller) => isOwn ? loggedInUser(caller) : undefined;

  async function find(id: string, caller: Caller): Promise<App> {
    const owner = ownerOf(caller);
    const app = await findApp(database, id);
    return found(owner === undefined || app?.owner === owner ? app : undefined, "app");
  }

  return [
    ...isOwn ? [] : operatorOperations(services),
    make("GET", path, `list${own}Apps`,
      isOwn ? "List the apps that the caller owns" : "List apps", {
      query: { ...pagination(AppRecord.members.client_id), ...filters },
      returns: pageOf(AppRecord),
      async handle({ query, caller }) {
        const given = isOwn ? { ...query, owner: loggedInUser(caller) } : query;
        return toPageRecord(await listPart(database, APP_LIST, given), toAppRecord);
      },
    }),
    make("GET", item, `get${own}App`, isOwn ? "One of the caller's apps" : "One app", {
      returns: AppRecord,
      handle: async ({ params, caller }) => toAppRecord(await find(params.client_id, caller)),
    }),
    make("PATCH", item, `change${own}App`,
      isOwn ? "Change the name or the addresses of one's app" : "Change an app, or disable it", {
      body: change,
      returns: AppRecord,
      refuses: [409],
      handle: ({ params, body, ...context }) => changeFresh(async () => {
        const app = await find(params.client_id, context.caller);
        if (isOwn && app.trusted && (body.url !== undefined || body.redirect_uris !== undefined)) {
          // A trusted app skips consent: whoever controls its addresses gets everybody's codes.
          const detail = "The app is trusted; only an operator changes its addresses.";
          throw new Problem(403, "trusted_app", detail);
        }
        return toAppRecord(await storeChange(context, app, body, services));
      }),
    }),
    make("POST", `${item}/secret`, `replace${own}AppSecret`,
      `Replace ${isOwn ? "the secret of one's app" : "an app's secret"}; ` +
        "the old one stays valid for a day, or is revoked at once", {
      body: optional(NewAppSecret),
      returns: AppSecret,
      refuses: [409],
      async handle({ params, body, ...context }) {
        const app = await find(params.client_id, context.caller);
        const { id, type, jwks } = app;
        if (type === "public") throw conflict("A public app has no secret.");
        if (jwks.length > 0) throw conflict("The app has jwks, no secret; set jwks to null.");
        await checkGivesBackend(context.caller, app, undefined, services);
        const oldUntilMs = body?.revoke ? 0 : services.now() + OLD_SECRET_MS;
        const secret = newSecret();
        const owner = ownerOf(context.caller); // the app may have another owner by now
        const replace = replaceAppSecret(id, sha256(secret), oldUntilMs, owner);
        await changeAudited(context, "app.rotate_secret", id, [replace], services);
        return { client_id: id, client_secret: secret };
      },
    }),
  ];
}

function operatorOperations(services: Administration): Operation[] {
  const { database, now, config: { accessTokenTtlMs, profile } } = services;
  return [
    backend("POST", "/backend/app", "addApp", "Add an app; its secret is shown here only", {
      body: NewApp,
      responses: { 201: AppWithSecret },
      refuses: [409],
      async handle({ body, ...context }) {
        const createdAtMs = now();
        const id = newId("a", createdAtMs);
        const app = newApp(body, { id, createdAtMs }, profile);
        await checkOwner(database, body.owner);
        await checkGivesBackend(context.caller, app, undefined, services);
        const hasSecret = app.type === "confidential" && app.jwks.length === 0;
        const secret = hasSecret ? newSecret() : undefined;
        const insert = insertApp(app, secret === undefined ? undefined : sha256(secret));
        await storeAudited(context, "app.create", id, [insert], services);
        const record = { ...toAppRecord(app), client_secret: secret };
        return locatedResponse(201, context.request.path, id, record);
      },
    }),
    backend("DELETE", "/backend/app/:client_id", "deleteApp", "Remove an app", {
      async handle({ params, ...context }) {
        const { id } = found(await findApp(database, params.client_id), "app");
        await checkRecentLogin(context.caller, services);
        const end = { reason: "app deleted", deletes: true };
        const forget = await forgetConsentsOf(database, { app: id });
        await changeAudited(context, "app.delete", id, [
          ...revokeTokensOfApp(id, now(), accessTokenTtlMs, end),
          ...forget,
          deleteApp(id),
        ], services);
      },
    }),
  ];
}

/** Throws Problem 400 if the new owner of an app is not an existing user. */
async function checkOwner(database: Database, owner: string | null | undefined): Promise<void> {
  if (!owner || await findUser(database, owner)) return;
  throw invalid([{ pointer: "/owner", detail: "There is no such user." }], "body");
}

/** Stores an app changed by `body`; throws Problem as `changeApp` and `changeAudited` do. */
async function storeChange(
  context: Actor,
  app: App,
  body: Infer<typeof AppChange>,
  services: Administration,
): Promise<App> {
  const { database, now, config: { accessTokenTtlMs, profile } } = services;
  const { id } = app;
  const changed = changeApp(app, body, profile);
  await checkOwner(database, body.owner);
  // New keys give access to all that the app may do. So do a new owner, who may make a secret, one
  // more grant type, and other addresses that codes are sent to.
  const givesAccess = body.jwks || body.owner || changed.url !== app.url ||
    changed.redirectUris.join(" ") !== app.redirectUris.join(" ") || // no URI has a space
    changed.grants.some((type) => !app.grants.includes(type));
  await checkGivesBackend(context.caller, changed, givesAccess ? undefined : app, services);
  const lost = app.scopes.filter((scope) => !changed.scopes.includes(scope));
  const isDisabled = changed.status === "disabled";
  const end = { reason: "app disabled" };
  // Another origin may belong to somebody else; the users gave consent to the old one.
  const isMoved = new URL(changed.url).origin !== new URL(app.url).origin;
  // Both come before the `now()` of `revokeTokensOfApp`, so that grants made meanwhile end too.
  const forget = await forgetConsentsOf(database, { app: id }, isMoved ? undefined : lost);
  const revoke = await revokeGrantsWithScopes(database, { app: id }, lost, now());
  await changeAudited(context, "app.change", id, [
    updateApp(app, changed),
    ...isDisabled ? revokeTokensOfApp(id, now(), accessTokenTtlMs, end) : [],
    ...revoke,
    ...forget,
    ...isMoved ? [deleteCodesOf(id)] : [],
  ], services);
  return changed;
}
