import { idTimeMs } from "../base/id.ts";
import type { App } from "../oauth/app.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findValue, hasRow, type RowOf } from "../database/rows.ts";
import { andIs, listOf, sql, type Sql } from "../database/sql.ts";
import { hasScope } from "./authority.ts";
import { writeInSteps } from "./batch.ts";
import type { Code } from "./codes.ts";
import { isOf, revokeGrantsOf } from "./grant_end.ts";
import { notBeforeOf } from "./grants.ts";
import type { Parties, SubscriptionsEnd } from "./subscription_end.ts";
import { IS_OPEN } from "./subscriptions.ts";

type Wanted = Pick<Code, "user" | "app" | "scopes" | "resource">;

/** The scopes that a user has allowed an app before. */
export async function findConsentedScopes(
  database: Database,
  user: string,
  app: string,
): Promise<readonly string[]> {
  const select = sql`SELECT scopes FROM consents WHERE ${isOf({ user, app })}`;
  return JSON.parse(await findValue<string>(database, select) ?? "[]");
}

/**
 * Holds where an app gets a code without asking its user. Either an operator trusts the app, or one
 * has registered it and the user has allowed it all these scopes before, at this service.
 */
export function needsNoConsent({ user, app, scopes, resource = null }: Wanted): Sql {
  return sql`EXISTS (SELECT 1 FROM apps WHERE id = ${app} AND (trusted OR (metadataUrl IS NULL
    AND ${resource} IS NULL AND NOT EXISTS (
      SELECT 1 FROM json_each(${JSON.stringify(scopes)}) wanted WHERE NOT EXISTS (
        SELECT 1 FROM consents c WHERE c.user = ${user} AND c.app = ${app}
          AND ${hasScope(sql`c.scopes`, sql`wanted.value`)})))))`;
}

/** Whether `needsNoConsent` holds. */
export function mayOmitConsent(database: Database, wanted: Wanted): Promise<boolean> {
  return hasRow(database, sql`SELECT 1 WHERE ${needsNoConsent(wanted)}`);
}

/**
 * Adds a code's scopes to what its user allows its app at this service, if the code of this id was
 * stored earlier in the batch. The same scope at another resource is not remembered.
 */
export function putConsentOfCode(code: string): Sql {
  return sql`INSERT INTO consents (user, app, scopes)
    SELECT user, app, scopes FROM codes WHERE id = ${code} AND resource IS NULL
    ON CONFLICT (user, app) DO UPDATE SET scopes = (SELECT json_group_array(value) FROM (
      SELECT value FROM json_each(consents.scopes)
      UNION SELECT value FROM json_each(excluded.scopes)))`;
}

/** Removes what a user allowed an app; ends its grants made until now and its subscriptions. */
export function withdrawConsent(
  user: string,
  app: string,
  end: SubscriptionsEnd,
  nowMs: number,
  accessTtlMs: number,
): Sql[] {
  return [
    sql`INSERT INTO consents (user, app, scopes, notBeforeMs)
      SELECT u.id, a.id, '[]', ${nowMs} FROM users u, apps a WHERE u.id = ${user} AND a.id = ${app}
      ON CONFLICT (user, app) DO UPDATE SET scopes = excluded.scopes,
        notBeforeMs = max(notBeforeMs, excluded.notBeforeMs)`,
    ...revokeGrantsOf({ user, app }, end, nowMs, accessTtlMs),
  ];
}

/**
 * Removes all consents of a user or to an app, or only these scopes of them. Returns the statements
 * for the batch that makes this necessary. If there are very many consents, changes most of them
 * before, in steps for which no other write waits long. Withdrawn consents stay withdrawn.
 */
export async function forgetConsentsOf(
  database: Database,
  of: Parties,
  scopes?: readonly string[],
): Promise<Sql[]> {
  if (scopes?.length === 0) return [];
  const where = isOf(of);
  const key = of.user === undefined ? sql`user` : sql`app`;
  const goes = scopes ? sql`value IN ${listOf(scopes)}` : sql`TRUE`;
  const forget = (some: Sql) => sql`UPDATE consents
    SET scopes = (SELECT json_group_array(value) FROM json_each(consents.scopes) WHERE NOT ${goes})
    WHERE ${some} AND EXISTS (SELECT 1 FROM json_each(consents.scopes) WHERE ${goes})`;
  await writeInSteps(database, { table: sql`consents`, key, where, after: "" }, (keys) => {
    const some = sql`${where} AND ${key} IN ${listOf(keys)}`;
    return [
      ...scopes ? [] : [sql`DELETE FROM consents WHERE ${some} AND notBeforeMs = 0`],
      forget(some),
    ];
  });
  return [forget(where)];
}

/** An app that may act for a user: by a consent, code or grant, or a subscription left of one. */
export interface ActingApp extends Pick<App, "id" | "name" | "url"> {
  /** The allowed scopes that the app and the user still have. */
  readonly scopes: readonly string[];
}

interface ActingRow extends RowOf<ActingApp> {
  /** The id of the newest such grant or code; null for a consent or a subscription. */
  readonly grantId: string | null;
  readonly notBeforeMs: number | null;
}

/** How many of a user's newest grants are examined: older ones do not stay valid for long. */
const LISTED_GRANTS = 500;

/** Lists the active apps that may act for a user, or `app` alone; the last registered first. */
export async function listActingApps(
  database: Database,
  user: string,
  nowMs: number,
  app?: string,
): Promise<ActingApp[]> {
  const only = andIs(sql`app`, app);
  const isIn = (scopes: Sql) => hasScope(scopes, sql`value`);
  const select = sql`SELECT a.id, a.name, a.url, allowed.grantId,
      (SELECT json_group_array(value) FROM json_each(allowed.scopes)
        WHERE ${isIn(sql`u.scopes`)} AND ${isIn(sql`a.scopes`)}) AS scopes,
      ${notBeforeOf(sql`u.id`, sql`a.id`, sql`allowed.resource`)} AS notBeforeMs
    FROM (
      SELECT app, scopes, NULL AS resource, NULL AS grantId FROM consents
      WHERE user = ${user} AND scopes <> '[]'${only}
      UNION ALL
      SELECT app, scopes, resource, max(id)
      FROM (SELECT id, app, scopes, resource FROM grants INDEXED BY grants_of_user
        WHERE user = ${user} AND revokedAtMs IS NULL AND untilMs > ${nowMs}${only}
        ORDER BY id DESC ${limitTo(LISTED_GRANTS)})
      GROUP BY app, scopes, resource
      UNION ALL
      SELECT app, scopes, resource, id FROM codes
      WHERE user = ${user} AND untilMs > ${nowMs}${only}
      UNION ALL
      SELECT app, ifnull(granted, '[]'), NULL, NULL FROM subscriptions
      WHERE principal = ${user} AND status <> 'deleted' AND ${IS_OPEN}${andIs(sql`+app`, app)}
    ) allowed CROSS JOIN apps a ON a.id = allowed.app JOIN users u ON u.id = ${user}
    WHERE a.status = 'active' ORDER BY a.id DESC`;
  const rows = await database.query<ActingRow>(select);
  const apps = new Map<string, ActingApp>();
  for (const { id, name, url, grantId, notBeforeMs, scopes } of rows) {
    if (grantId !== null && idTimeMs(grantId) <= (notBeforeMs ?? Infinity)) continue;
    const known = apps.get(id)?.scopes ?? [];
    apps.set(id, { id, name, url, scopes: [...new Set([...known, ...JSON.parse(scopes)])] });
  }
  return [...apps.values()];
}
