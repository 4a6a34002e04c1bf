import { newId } from "../../base/id.ts";
import { conflict, invalid } from "../../base/problem.ts";
import { newSecret, sha256 } from "../../base/secret.ts";
import { type Infer, optional } from "../../base/shape.ts";
import type { Database } from "../../database/database.ts";
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
} from "../../oauth/app.ts";
import {
  APP_LIST,
  deleteApp,
  findApp,
  insertApp,
  replaceAppSecret,
  revokeTokensOfApp,
  updateApp,
} from "../../store/apps.ts";
import { deleteCodesOf } from "../../store/codes.ts";
import { forgetConsentsOf } from "../../store/consents.ts";
import { revokeGrantsWithScopes } from "../../store/grant_end.ts";
import { findUser } from "../../store/users.ts";
import {
  type Actor,
  type Administration,
  changeAudited,
  changeFresh,
  found,
  locatedResponse,
  storeAudited,
} from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";
import { checkGivesBackend, checkRecentLogin } from "../recent_login.ts";

const OLD_SECRET_MS = 24 * 60 * 60_000;
const PATH = "/backend/app";
const ITEM = `${PATH}/:client_id` as const;

/** /backend/app: OAuth clients. */
export function appOperations(services: Administration): Operation[] {
  const { database, now, config: { accessTokenTtlMs, profile } } = services;
  const find = async (id: string) => found(await findApp(database, id), "app");

  return [
    backend("POST", PATH, "addApp", "Add an app; its secret is shown here only", {
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
        await storeAudited(context, [insert], { action: "app.create", target: id }, services);
        const record = { ...toAppRecord(app), client_secret: secret };
        return locatedResponse(201, context.request.path, id, record);
      },
    }),
    backend("GET", PATH, "listApps", "List apps",
      listing(database, APP_LIST, AppRecord.members.client_id, AppRecord, toAppRecord)),
    backend("GET", ITEM, "getApp", "One app", {
      returns: AppRecord,
      handle: async ({ params }) => toAppRecord(await find(params.client_id)),
    }),
    backend("PATCH", ITEM, "changeApp", "Change an app, or disable it", {
      body: AppChange,
      returns: AppRecord,
      refuses: [409],
      handle: ({ params: { client_id: id }, body, ...context }) =>
        storeAppChange(context, () => find(id), body, services),
    }),
    backend("DELETE", ITEM, "deleteApp", "Remove an app", {
      async handle({ params, ...context }) {
        const { id } = await find(params.client_id);
        await checkRecentLogin(context.caller, services);
        const end = { reason: "app deleted", deletes: true };
        const forget = await forgetConsentsOf(database, { app: id });
        await changeAudited(context, "app.delete", id, [
          ...revokeTokensOfApp(id, now(), accessTokenTtlMs, end),
          forget,
          deleteApp(id),
        ], services);
      },
    }),
    backend("POST", `${ITEM}/secret`, "replaceAppSecret",
      "Replace an app's secret; the old one is good for a day, or no more at all", {
      body: optional(NewAppSecret),
      returns: AppSecret,
      refuses: [409],
      handle: async ({ params: { client_id: id }, body, ...context }) =>
        storeAppSecret(context, await find(id), body, services),
    }),
  ];
}

/** Throws Problem 400 where an app's owner is to be a user that there is not. */
async function checkOwner(database: Database, owner: string | null | undefined): Promise<void> {
  if (!owner || await findUser(database, owner)) return;
  throw invalid([{ pointer: "/owner", detail: "There is no such user." }], "body");
}

/** Changes an app as it is when that is stored; throws Problem as `find` and `changeApp` do. */
export async function storeAppChange(
  context: Actor,
  find: () => Promise<App>,
  body: Infer<typeof AppChange>,
  services: Administration,
) {
  const { database, now, config: { accessTokenTtlMs, profile } } = services;
  const stored = await changeFresh(async () => {
    const app = await find();
    const { id } = app;
    const changed = changeApp(app, body, profile);
    await checkOwner(database, body.owner);
    // New keys are a way to all that an app may do; so are a new owner, who may make its secret,
    // one more grant, and other addresses that codes are sent to.
    const isWay = body.jwks || body.owner || changed.url !== app.url ||
      changed.redirectUris.join(" ") !== app.redirectUris.join(" ") || // none has a space
      changed.grants.some((type) => !app.grants.includes(type));
    await checkGivesBackend(context.caller, changed, isWay ? undefined : app, services);
    const lost = app.scopes.filter((scope) => !changed.scopes.includes(scope));
    const isDisabled = changed.status === "disabled";
    const end = { reason: "app disabled" };
    // At another origin there may be somebody else than the one whom the users allowed it.
    const isMoved = new URL(changed.url).origin !== new URL(app.url).origin;
    // Both before the time of the cut is read: what is granted meanwhile ends with it.
    const forget = isMoved || lost.length > 0
      ? [await forgetConsentsOf(database, { app: id }, isMoved ? undefined : lost)]
      : [];
    const revoke = await revokeGrantsWithScopes(database, { app: id }, lost, now());
    await changeAudited(context, "app.change", id, [
      updateApp(app, changed),
      ...isDisabled ? revokeTokensOfApp(id, now(), accessTokenTtlMs, end) : [],
      ...revoke,
      ...forget,
      ...isMoved ? [deleteCodesOf(id)] : [],
    ], services);
    return changed;
  });
  return toAppRecord(stored);
}

/** Replaces an app's secret; throws Problem 409 where it has none. */
export async function storeAppSecret(
  context: Actor,
  app: App,
  body: Infer<typeof NewAppSecret> | undefined,
  services: Administration,
) {
  const { id, type, jwks } = app;
  if (type === "public") throw conflict("A public app has no secret.");
  if (jwks.length > 0) throw conflict("The app proves itself by its jwks; set that to null.");
  await checkGivesBackend(context.caller, app, undefined, services);
  const oldUntilMs = body?.revoke ? 0 : services.now() + OLD_SECRET_MS;
  const secret = newSecret();
  const replace = replaceAppSecret(id, sha256(secret), oldUntilMs);
  await changeAudited(context, "app.rotate_secret", id, [replace], services);
  return { client_id: id, client_secret: secret };
}
