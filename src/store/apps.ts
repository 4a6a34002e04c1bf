import { idOf } from "../base/id.ts";
import { described } from "../base/shape.ts";
import { type App, AppChange } from "../oauth/app.ts";
import { type DocumentHosts, isDocumentUrl } from "../oauth/client_metadata.ts";
import { ACCOUNT_STATUS } from "../oauth/user.ts";
import type { Database } from "../database/database.ts";
import { findItem, hasRow } from "../database/rows.ts";
import { andIs, sql, type Sql } from "../database/sql.ts";
import { type Change, updateWhere } from "./audit.ts";
import { columnsOf } from "./columns.ts";
import { revokeGrantsOf, REVOKED } from "./grant_end.ts";
import { beginsWith, is } from "./list.ts";

/** An app with the SHA-256 of its secrets, which client authentication alone uses. */
export interface AppWithSecrets extends App {
  readonly secret?: Uint8Array | null;
  readonly oldSecret?: Uint8Array | null;
}

/** The columns of an app that a change may replace. */
const CHANGED = columnsOf(AppChange.members);
const COLUMNS = sql`id, type, ${CHANGED.names}, secret, oldSecret, oldSecretUntilMs, createdAtMs,
  metadataUrl`;
const toApp = CHANGED.read<AppWithSecrets>;

/** An app by id, with the hashes of its secrets. */
export function findApp(database: Database, id: string) {
  return findItem(database, sql`SELECT ${COLUMNS} FROM apps WHERE id = ${id}`, toApp);
}

/** An app by what it sends as its `client_id`: its id, or the URL of the document about it. */
export function findClient(database: Database, clientId: string) {
  const select = sql`SELECT ${COLUMNS} FROM apps WHERE ifnull(metadataUrl, id) = ${clientId}`;
  return findItem(database, select, toApp);
}

/** Holds while an app's URL has the origin that was read: another origin is somebody else's. */
export function hasSameOrigin({ id, url }: Pick<App, "id" | "url">): Sql {
  return sql`EXISTS (SELECT 1 FROM apps WHERE id = ${id} AND origin = ${new URL(url).origin})`;
}

export const APP_LIST = {
  table: sql`apps`,
  columns: COLUMNS,
  filters: {
    q: beginsWith(sql`apps`, sql`name`, "the name"),
    owner: is(sql`owner`, described("The owner's id.", idOf("u"))),
    status: is(sql`status`, ACCOUNT_STATUS),
  },
  indexes: { owner: [], q: [] },
  toItem: toApp,
} as const;

/** Whether any active app's URL has this origin; `documents`: whose documents are accepted. */
export function hasAppOrigin(database: Database, origin: string, documents: DocumentHosts) {
  // An app that a document describes has the document's origin, whatever its path.
  const isAccepted = isDocumentUrl(`${origin}/client`, documents);
  const select = sql`SELECT 1 FROM apps WHERE origin = ${origin} AND status = 'active'
    AND (metadataUrl IS NULL OR ${Number(isAccepted)}) LIMIT 1`;
  return hasRow(database, select);
}

/** Stores an app with the SHA-256 of its secret, or none for a public app. */
export function insertApp(app: App, secret: Uint8Array | undefined): Sql {
  return sql`INSERT INTO apps (id, type, ${CHANGED.names}, origin, secret, createdAtMs, metadataUrl)
    VALUES (${app.id}, ${app.type}, ${CHANGED.values(app)}, ${new URL(app.url).origin},
      ${secret ?? null}, ${app.createdAtMs}, ${app.metadataUrl ?? null})`;
}

/** Stores a changed app; ConflictError, for the whole batch, where it is no longer as `before`. */
export function updateApp(before: App, after: App): Change {
  const { origin } = new URL(after.url);
  // An app with keys has no secret: whoever has the old one cannot pose as the app.
  const kept = after.jwks.length > 0 ? sql`NULL, NULL, NULL`
    : sql`secret, oldSecret, oldSecretUntilMs`;
  return updateWhere(sql`apps`, sql`${CHANGED.replace(before, after, sql`origin`, origin)},
    (secret, oldSecret, oldSecretUntilMs) = (${kept})`, sql`id = ${after.id}`);
}

/** Gives an app (of `owner`, if given) a new secret; the old one stays valid until `oldUntilMs`. */
export function replaceAppSecret(
  id: string,
  secret: Uint8Array,
  oldUntilMs: number,
  owner?: string,
): Change {
  const set = sql`oldSecret = secret, oldSecretUntilMs = ${oldUntilMs}, secret = ${secret}`;
  return updateWhere(sql`apps`, set, sql`id = ${id}${andIs(sql`owner`, owner)}`);
}

/** Ends every grant that an app was given until now, and the subscriptions made through it. */
export function revokeTokensOfApp(id: string, nowMs: number, accessTtlMs: number, end = REVOKED) {
  return [
    updateWhere(sql`apps`, sql`notBeforeMs = max(notBeforeMs, ${nowMs})`, sql`id = ${id}`),
    ...revokeGrantsOf({ app: id }, end, nowMs, accessTtlMs),
  ];
}

/** The active apps that may use the code grant and list no redirect URI. */
export function listUnlistedApps({ query }: Pick<Database, "query">): Promise<Pick<App, "id">[]> {
  return query(sql`SELECT id FROM apps WHERE redirectUris = '[]' AND status = 'active'
    AND grants LIKE '%authorization_code%'`);
}

/** Removes an app; end its tokens first. */
export function deleteApp(id: string): Sql {
  return sql`DELETE FROM apps WHERE id = ${id}`;
}
