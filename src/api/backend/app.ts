import { openFields } from "../../base/fields.ts";
import { newId } from "../../base/id.ts";
import { Problem } from "../../base/problem.ts";
import { newSecret, sha256 } from "../../base/secret.ts";
import { type App, parseAppChange, parseNewApp } from "../../oauth/app.ts";
import {
  revokeTokensOfApp,
  deleteApp,
  findApp,
  insertApp,
  listApps,
  replaceAppSecret,
  updateApp,
} from "../../store/apps.ts";
import { deleteCodesOf } from "../../store/codes.ts";
import { forgetConsentsOf } from "../../store/consents.ts";
import { revokeGrantsWithScopes } from "../../store/grant_end.ts";
import { bringsBody, readJson } from "../../http/body.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import {
  BACKEND_ROUTE,
  type BackendOptions,
  changeFresh,
  checkChanged,
  found,
  storeAudited,
} from "./backend_route.ts";

const OLD_SECRET_MS = 24 * 60 * 60_000;

/** /backend/app: OAuth clients. */
export function appRoutes(options: BackendOptions): ProtectedRoute[] {
  const { database, maxBodyBytes, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/app" };
  const item = { ...BACKEND_ROUTE, path: "/backend/app/:client_id" };
  const find = async (params: Readonly<Record<string, string>>) =>
    found(await findApp(database, params["client_id"] ?? ""), "app");

  return [
    {
      ...collection,
      method: "POST",
      summary: "Add an app; its secret is shown here only",
      async handle(context) {
        const input = parseNewApp(await readJson(context.request, maxBodyBytes));
        const createdAtMs = now();
        const id = newId("a", createdAtMs);
        const app: App = { ...input, id, status: "active", createdAtMs, notBeforeMs: 0 };
        const secret = app.type === "confidential" ? newSecret() : undefined;
        const insert = insertApp(app, secret === undefined ? undefined : sha256(secret));
        await storeAudited(context, [insert], { action: "app.create", target: id }, options);
        return jsonResponse(
          201,
          { ...toRecord(app), ...(secret !== undefined && { client_secret: secret }) },
          { Location: `${options.basePath}${collection.path}/${id}`, ...NO_STORE },
        );
      },
    },
    {
      ...collection,
      method: "GET",
      summary: "List apps",
      async handle({ request }) {
        return listResponse(await listApps(database, readPagination(request)), toRecord);
      },
    },
    {
      ...item,
      method: "GET",
      summary: "One app",
      handle: async ({ params }) => jsonResponse(200, toRecord(await find(params)), NO_STORE),
    },
    {
      ...item,
      method: "PATCH",
      summary: "Change an app, or disable it",
      async handle(context) {
        const body = await readJson(context.request, maxBodyBytes); // first: it may come slowly
        await changeFresh(async () => {
          const app = await find(context.params);
          const changed = parseAppChange(body, app);
          const lost = app.scopes.filter((scope) => !changed.scopes.includes(scope));
          const isDisabled = changed.status === "disabled";
          const end = { reason: "app disabled" };
          // Whoever is there now is another than the one whom the users allowed it.
          const isMoved = new URL(changed.url).origin !== new URL(app.url).origin;
          await storeAudited(context, [
            updateApp(app, changed),
            ...isDisabled ? revokeTokensOfApp(app.id, now(), options.accessTokenTtlMs, end) : [],
            ...revokeGrantsWithScopes({ app: app.id }, lost, now()),
            ...isMoved ? [forgetConsentsOf({ app: app.id }), deleteCodesOf(app.id)] : [],
          ], { action: "app.change", target: app.id }, options);
        });
        return jsonResponse(200, toRecord(await find(context.params)), NO_STORE);
      },
    },
    {
      ...item,
      method: "DELETE",
      summary: "Remove an app",
      async handle(context) {
        const app = await find(context.params);
        const end = { reason: "app deleted", deletes: true };
        const changes = await storeAudited(context, [
          ...revokeTokensOfApp(app.id, now(), options.accessTokenTtlMs, end),
          deleteApp(app.id),
        ], { action: "app.delete", target: app.id }, options);
        checkChanged(changes, "app");
        return emptyResponse(204);
      },
    },
    {
      ...item,
      path: `${item.path}/secret`,
      method: "POST",
      summary: "Replace an app's secret; the old one is good for a day, or no more at all",
      async handle(context) {
        const app = await find(context.params);
        if (app.type === "public") {
          throw new Problem(409, "conflict", "A public app has no secret.");
        }
        const oldUntilMs = await readsRevoke(context.request, maxBodyBytes)
          ? 0
          : now() + OLD_SECRET_MS;
        const secret = newSecret();
        const replace = replaceAppSecret(app.id, sha256(secret), oldUntilMs);
        const action = { action: "app.rotate_secret", target: app.id };
        checkChanged(await storeAudited(context, [replace], action, options), "app");
        return jsonResponse(200, { client_id: app.id, client_secret: secret }, NO_STORE);
      },
    },
  ];
}

/** Whether the body, which may be missing, says `{"revoke": true}`. */
async function readsRevoke(
  request: Parameters<typeof readJson>[0],
  maxBodyBytes: number,
): Promise<boolean> {
  if (!bringsBody(request)) return false;
  const fields = openFields(await readJson(request, maxBodyBytes));
  const revoke = fields.flag("revoke") ?? false;
  fields.finish("request for a new secret");
  return revoke;
}

/** An app as the backend shows it. */
export function toRecord(app: App): Record<string, unknown> {
  return {
    client_id: app.id,
    name: app.name,
    url: app.url,
    type: app.type,
    scopes: app.scopes,
    grants: app.grants,
    redirect_uris: app.redirectUris,
    redirect_rule: app.redirectUris.length > 0 ? "listed" : "prefix",
    trusted: app.trusted,
    resource_server: app.resourceServer,
    status: app.status,
    created_at: new Date(app.createdAtMs).toISOString(),
  };
}
