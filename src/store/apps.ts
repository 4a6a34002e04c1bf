import type { App } from "../oauth/app.ts";
import { parseGrantType } from "../oauth/grant_type.ts";
import { parseScope } from "../oauth/scope.ts";
import {
  type Database,
  type Page,
  pageOf,
  type Pagination,
  sql,
  type Statement,
  valueIf,
} from "../database/database.ts";
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
  scope: string;
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

const COLUMNS = `id, name, url, type, scope, grants, redirect_uris AS redirectUris, trusted,
  resource_server AS resourceServer, status, secret, old_secret AS oldSecret,
  old_secret_until AS oldSecretUntilMs, created_at AS createdAtMs, cut_at AS notBeforeMs`;

function toApp(row: AppRow): AppWithSecrets {
  const { scope, grants, redirectUris, trusted, resourceServer, ...rest } = row;
  return {
    ...rest,
    scopes: parseScope(scope) ?? [],
    grants: grants.split(" ").map(parseGrantType).filter((type) => type !== undefined),
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
  const rows = await database.query(
    "SELECT 1 FROM apps WHERE origin = ?1 AND status = 'active' LIMIT 1",
    [origin],
  );
  return rows.length > 0;
}

/** Stores an app with the SHA-256 of its secret, or none for a public app. */
export function insertApp(app: App, secret: Uint8Array | undefined): Statement {
  return sql(
    `INSERT INTO apps (id, name, url, origin, type, scope, grants, redirect_uris, trusted,
       resource_server, status, secret, created_at)
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
export function updateApp(before: App, after: App): Statement {
  const [id, ...values] = appParams(after);
  return sql(
    `UPDATE apps SET url = ?3, origin = ?4, type = ?5, scope = ?6, grants = ?7, redirect_uris = ?8,
       trusted = ?9, resource_server = ?10, status = ?11,
       name = ${valueIf(`(name, url, origin, type, scope, grants, redirect_uris, trusted,
         resource_server, status) = (?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)`, "?2")}
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
    app.scopes.join(" "),
    app.grants.join(" "),
    JSON.stringify(app.redirectUris),
    app.trusted ? 1 : 0,
    app.resourceServer ? 1 : 0,
    app.status,
  ] as const;
}

/** Gives an app a new secret; the one before stays good until `oldUntilMs`. */
export function replaceAppSecret(id: string, secret: Uint8Array, oldUntilMs: number): Statement {
  return sql(
    "UPDATE apps SET old_secret = secret, old_secret_until = ?3, secret = ?2 WHERE id = ?1",
    id,
    secret,
    oldUntilMs,
  );
}

/** Ends every grant that an app was given until now, and the subscriptions made through it. */
export function revokeTokensOfApp(
  id: string,
  nowMs: number,
  accessTtlMs: number,
  { reason, ...ending }: SubscriptionsEnd = { reason: REVOKED },
): Statement[] {
  return [
    sql("UPDATE apps SET cut_at = max(cut_at, ?2) WHERE id = ?1", id, nowMs),
    ...revokeGrantsOf({ app: id }, nowMs, accessTtlMs),
    ...endSubscriptions({ app: id, ...ending }, reason, nowMs),
  ];
}

/** Removes an app; cut it first. */
export function deleteApp(id: string): Statement {
  return sql("DELETE FROM apps WHERE id = ?1", id);
}
