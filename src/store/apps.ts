import type { App } from "../oauth/app.ts";
import type { GrantType } from "../oauth/grant_type.ts";
import {
  type Database,
  type Page,
  pageOf,
  type Pagination,
  valueIf,
} from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { revokeGrantsOf, REVOKED } from "./grant_end.ts";
import { endSubscriptions, type SubscriptionsEnd } from "./subscription_end.ts";

/** An app with the SHA-256 of its secrets, which go no further than client authentication. */
export interface AppWithSecrets extends App {
  readonly secret: Uint8Array | null;
  readonly oldSecret: Uint8Array | null;
  readonly oldSecretUntilMs: number | null;
}

interface AppRow {
  id: string;
  name: string;
  url: string;
  type: App["type"];
  scopes: string;
  grants: string;
  redirectUris: string;
  trusted: number;
  resourceServer: number;
  status: App["status"];
  secret: Uint8Array | null;
  oldSecret: Uint8Array | null;
  oldSecretUntilMs: number | null;
  createdAtMs: number;
  notBeforeMs: number;
}

const COLUMNS = `id, name, url, type, scopes, grants, redirectUris, trusted,
  resourceServer, status, secret, oldSecret,
  oldSecretUntilMs, createdAtMs, notBeforeMs`;

function toApp(row: AppRow): AppWithSecrets {
  const { scopes, grants, redirectUris, trusted, resourceServer, ...rest } = row;
  return {
    ...rest,
    scopes: JSON.parse(scopes) as string[],
    grants: JSON.parse(grants) as GrantType[],
    redirectUris: JSON.parse(redirectUris) as string[],
    trusted: trusted === 1,
    resourceServer: resourceServer === 1,
  };
}

/** An app by its `client_id`. */
export async function findApp(database: Database, id: string): Promise<AppWithSecrets | undefined> {
  const rows = await database.query<AppRow>(`SELECT ${COLUMNS} FROM apps WHERE id = ?1`, [id]);
  return rows.map(toApp)[0];
}

/** Apps, newest first. */
export async function listApps(database: Database, page: Pagination): Promise<Page<App>> {
  const rows = await database.query<AppRow>(
    `SELECT ${COLUMNS} FROM apps WHERE id < ?1 ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1],
  );
  return pageOf(rows.map(toApp), page);
}

/** Whether any active app's URL has this origin. */
export async function hasAppOrigin(database: Database, origin: string): Promise<boolean> {
  const rows = await database.query(sql`SELECT 1 FROM apps WHERE origin = ${origin} AND status = 'active' LIMIT 1`);
  return rows.length > 0;
}

/** Stores an app with the SHA-256 of its secret, or none for a public app. */
export function insertApp(app: App, secret: Uint8Array | undefined): Sql {
  return sql(
    `INSERT INTO apps (id, name, url, origin, type, scopes, grants, redirectUris, trusted,
       resourceServer, status, secret, createdAtMs)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`,
    ...appParams(app),
    secret ?? null,
    app.createdAtMs,
  );
}

/**
 * Stores an app as it shall be; ConflictError, for the whole batch, where it is not any more as it
 * was read.
 */
export function updateApp(before: App, after: App): Sql {
  const [id, ...values] = appParams(after);
  return sql(
    `UPDATE apps SET url = ?3, origin = ?4, type = ?5, scopes = ?6, grants = ?7, redirectUris = ?8,
       trusted = ?9, resourceServer = ?10, status = ?11,
       name = ${valueIf(`(name, url, origin, type, scopes, grants, redirectUris, trusted,
         resourceServer, status) = (?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)`, "?2")}
     WHERE id = ?1`,
    id,
    ...values,
    ...appParams(before).slice(1),
  );
}

function appParams(app: App) {
  return [
    app.id,
    app.name,
    app.url,
    new URL(app.url).origin,
    app.type,
    JSON.stringify(app.scopes),
    JSON.stringify(app.grants),
    JSON.stringify(app.redirectUris),
    app.trusted ? 1 : 0,
    app.resourceServer ? 1 : 0,
    app.status,
  ] as const;
}

/** Gives an app a new secret; the one before stays good until `oldUntilMs`. */
export function replaceAppSecret(id: string, secret: Uint8Array, oldUntilMs: number): Sql {
  return sql`UPDATE apps SET oldSecret = secret, oldSecretUntilMs = ${oldUntilMs}, secret = ${secret} WHERE id = ${id}`;
}

/** Ends every grant that an app was given until now, and the subscriptions made through it. */
export function revokeTokensOfApp(
  id: string,
  nowMs: number,
  accessTtlMs: number,
  { reason, ...ending }: SubscriptionsEnd = { reason: REVOKED },
): Sql[] {
  return [
    sql`UPDATE apps SET notBeforeMs = max(notBeforeMs, ${nowMs}) WHERE id = ${id}`,
    ...revokeGrantsOf({ app: id }, nowMs, accessTtlMs),
    ...endSubscriptions({ app: id, ...ending }, reason, nowMs),
  ];
}

/** Removes an app; cut it first. */
export function deleteApp(id: string): Sql {
  return sql`DELETE FROM apps WHERE id = ${id}`;
}
