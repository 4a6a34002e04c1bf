import { type Check, openFields } from "../../base/fields.ts";
import { idTimeMs, isId } from "../../base/id.ts";
import { LOGIN_APP } from "../../oauth/principal.ts";
import { revokeTokensOfApp, findApp } from "../../store/apps.ts";
import { forgetConsentsOf, withdrawConsent } from "../../store/consents.ts";
import type { Sql } from "../../database/sql.ts";
import {
  revokeTokensOf,
  REVOKED,
  revokeAllLogins,
  revokeGrant,
  revokeLoginsOf,
} from "../../store/grant_end.ts";
import { endSubscriptions } from "../../store/subscription_end.ts";
import { findGrant, type ListedGrant, listGrants } from "../../store/grants.ts";
import { revokeTokensOfUser, findUser } from "../../store/users.ts";
import { readJson } from "../../http/body.ts";
import { checkId, listResponse, readFilteredPagination } from "../pagination.ts";
import { emptyResponse } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE, type BackendOptions, found, storeAudited } from "./backend_route.ts";

const checkApp: Check = (text) =>
  isId("a", text) || text === LOGIN_APP ? undefined : `Must be a client_id, or ${LOGIN_APP}.`;
const checkUser = checkId("u");

/** /backend/grant: what has been authorized, and its end. */
export function grantRoutes(options: BackendOptions): ProtectedRoute[] {
  const { database, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/grant" };

  return [
    {
      ...collection,
      method: "GET",
      summary: "List grants, of one user or one app",
      async handle({ request }) {
        const { page, filter } = readFilteredPagination(request, { user: checkUser, app: checkApp });
        return listResponse(await listGrants(database, filter, page, now()), toRecord);
      },
    },
    {
      ...collection,
      path: `${collection.path}/:id`,
      method: "DELETE",
      summary: "Revoke a grant and every token of it",
      async handle(context) {
        const { id } = found(await findGrant(database, context.params["id"] ?? ""), "grant");
        const audited = { action: "grant.revoke", target: id, always: true };
        await storeAudited(context, revokeGrant(id, now()), audited, options);
        return emptyResponse(204);
      },
    },
    {
      ...collection,
      path: `${collection.path}/revoke`,
      method: "POST",
      summary: "Revoke every grant of a user, of an app, or of a user through an app",
      async handle(context) {
        const body = await readJson(context.request, options.maxBodyBytes);
        const { user, app } = parseRevocation(body);
        if (user !== undefined) found(await findUser(database, user), "user");
        if (app !== undefined && app !== LOGIN_APP) found(await findApp(database, app), "app");
        const target = [user, app].filter(Boolean).join(" ");
        const audited = { action: "grant.revoke", target, always: true };
        await storeAudited(context, revokeAll(user, app, options), audited, options);
        if (user === undefined && app === LOGIN_APP) await revokeAllLogins(database, now());
        return emptyResponse(204);
      },
    },
  ];
}

/** Which grants are meant; throws Problem 400 with every fault. */
function parseRevocation(value: unknown) {
  const fields = openFields(value);
  const user = fields.text("user", checkUser);
  const app = fields.text("app", checkApp);
  if (!fields.has("user") && !fields.has("app")) {
    fields.report("user", "Is required where app is not given.");
  }
  fields.finish("revocation");
  return { user, app };
}

/**
 * Parties are cut off, which costs the same however many grants there are. What was allowed before
 * is asked anew.
 */
function revokeAll(
  user: string | undefined,
  app: string | undefined,
  { now, accessTokenTtlMs }: BackendOptions,
): Sql[] {
  if (app === undefined) {
    if (user === undefined) return [];
    const cut = revokeTokensOfUser(user, now(), accessTokenTtlMs, { reason: REVOKED });
    return [...cut, forgetConsentsOf({ user })];
  }
  if (app === LOGIN_APP) {
    return user === undefined
      ? [
        revokeTokensOf(LOGIN_APP, now(), accessTokenTtlMs),
        ...endSubscriptions({ app: LOGIN_APP }, REVOKED, now()),
      ]
      : revokeLoginsOf(user, now());
  }
  return user === undefined
    ? [...revokeTokensOfApp(app, now(), accessTokenTtlMs), forgetConsentsOf({ app })]
    : withdrawConsent(user, app, REVOKED, now(), accessTokenTtlMs);
}

function toRecord(grant: ListedGrant): Record<string, unknown> {
  const { id, user, app, type, scopes, status, revokedAtMs } = grant;
  const untilMs = Math.max(grant.refreshUntilMs, grant.accessUntilMs);
  return {
    id,
    user,
    app,
    type,
    scopes,
    status,
    created_at: new Date(idTimeMs(id)).toISOString(),
    expires_at: new Date(untilMs).toISOString(),
    ...(revokedAtMs !== null && { revoked_at: new Date(revokedAtMs).toISOString() }),
  };
}
