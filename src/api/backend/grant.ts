import { recordOf } from "../../base/fields.ts";
import { idOf, idTimeMs } from "../../base/id.ts";
import {
  described,
  type Infer,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  refined,
  shown,
  TEXT,
} from "../../base/shape.ts";
import { TIME } from "../../base/time.ts";
import type { Sql } from "../../database/sql.ts";
import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import { APP, BUILT_IN_APPS, isBuiltIn } from "../../oauth/principal.ts";
import { SCOPES } from "../../oauth/scope.ts";
import { findApp, revokeTokensOfApp } from "../../store/apps.ts";
import { forgetConsentsOf, withdrawConsent } from "../../store/consents.ts";
import {
  revokeAllOf,
  REVOKED,
  revokeGrant,
  revokeGrantsOf,
  revokeOwnOf,
} from "../../store/grant_end.ts";
import { findGrant, type ListedGrant, listGrants } from "../../store/grants.ts";
import { findUser, revokeTokensOfUser } from "../../store/users.ts";
import { type Administration, found, storeAudited } from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { pageOf, pagination, toPageRecord } from "../pagination.ts";

const PATH = "/backend/grant";
const USER = idOf("u");

export const GrantRecord = named("Grant", record({
  id: idOf("g"),
  user: nullable(USER),
  app: APP,
  type: shown<string>(oneOf(...GRANT_TYPES, ...BUILT_IN_APPS).schema),
  name: optional(described("The name of the app or of the personal token.", TEXT)),
  scopes: SCOPES,
  status: oneOf("active", "expired", "revoked"),
  created_at: TIME,
  last_used_at: described("Is accurate to two minutes.", nullable(TIME)),
  expires_at: TIME,
  revoked_at: optional(TIME),
}));
const toGrantRecord = recordOf(GrantRecord);

/** The grants to revoke. */
const Revocation = named("Revocation", refined(
  object({ user: optional(USER), app: optional(APP) }),
  ({ user, app }, report) => {
    if (user === undefined && app === undefined) {
      report("Is required without app.", "/user");
    }
  },
  { minProperties: 1 },
));

/** The filters of a list of grants. */
export const GRANT_FILTERS = {
  user: optional(described("A user's id.", USER)),
  app: optional(APP),
} as const;

/** /backend/grant: read and revoke grants. */
export function grantOperations(services: Administration): Operation[] {
  const { database, now } = services;

  return [
    backend("GET", PATH, "listGrants", "List grants, of one user or one app", {
      query: { ...pagination(GrantRecord.members.id), ...GRANT_FILTERS },
      returns: pageOf(GrantRecord),
      async handle({ query }) {
        const page = await listGrants(database, query, now());
        return toPageRecord(page, (grant) => toGrantRecord(grantFields(grant)));
      },
    }),
    backend("DELETE", `${PATH}/:id`, "revokeGrant", "Revoke a grant and every token of it", {
      async handle({ params, ...context }) {
        const { id } = found(await findGrant(database, params.id), "grant");
        await storeAudited(context, "grant.revoke", id, revokeGrant(id, now()), services);
      },
    }),
    backend("POST", `${PATH}/revoke`, "revokeGrants",
      "Revoke every grant of a user, of an app, or of a user through an app", {
      body: Revocation,
      refuses: [404],
      async handle({ body, ...context }) {
        const { user, app } = body;
        if (user !== undefined) found(await findUser(database, user), "user");
        if (app !== undefined && !isBuiltIn(app)) found(await findApp(database, app), "app");
        const target = [user, app].filter(Boolean).join(" ");
        const revoke = await revokeAll(body, services);
        await storeAudited(context, "grant.revoke", target, revoke, services);
        if (user === undefined && isBuiltIn(app)) await revokeAllOf(database, app, now());
      },
    }),
  ];
}

/**
 * Revokes by user and app, which costs the same for any number of grants. Consents are forgotten,
 * so that users are asked again.
 */
async function revokeAll(
  { user, app }: Infer<typeof Revocation>,
  { database, now, config: { accessTokenTtlMs: ttlMs } }: Administration,
): Promise<Sql[]> {
  if (user !== undefined) {
    if (isBuiltIn(app)) return revokeOwnOf(user, app, now());
    if (app !== undefined) return withdrawConsent(user, app, REVOKED, now(), ttlMs);
    const forget = await forgetConsentsOf(database, { user });
    return [...revokeTokensOfUser(user, now(), ttlMs, REVOKED), ...forget];
  }
  if (app === undefined) return [];
  if (isBuiltIn(app)) return revokeGrantsOf({ app }, REVOKED, now(), ttlMs);
  const forget = await forgetConsentsOf(database, { app });
  return [...revokeTokensOfApp(app, now(), ttlMs), ...forget];
}

/** Returns the fields from which the record of a grant is made. */
export function grantFields(grant: ListedGrant) {
  const expiresAtMs = Math.max(grant.refreshUntilMs, grant.accessUntilMs);
  return { ...grant, createdAtMs: idTimeMs(grant.id), expiresAtMs };
}
