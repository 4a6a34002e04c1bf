import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { DATABASE_ADDRESS } from "../../src/base/database_address.ts";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import type { App } from "../../src/oauth/app.ts";
import type { User } from "../../src/oauth/user.ts";
import { insertApp } from "../../src/store/apps.ts";
import type { Database } from "../../src/database/database.ts";
import { createEngine } from "../../src/database/engine.ts";
import type { Sql } from "../../src/database/sql.ts";
import type { NewGrant } from "../../src/store/grants.ts";
import { insertSession } from "../../src/store/sessions.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { findUser, insertUser, type NewUserRow, updateUser } from "../../src/store/users.ts";
import { isOnRqlite, locateDatabase, releaseDatabase } from "./engine.ts";

/** Makes a folder that is removed when the test ends. */
export function makeFolder(test: { after(end: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-store-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a database, new or that at `path`, which is closed when the test ends. */
export function openDatabase(test: TestContext, path?: string): Database {
  const own = path ?? join(makeFolder(test), "gatepost.db");
  const database = openDatabaseAt(own);
  test.after(async () => {
    await database.close();
    if (path === undefined) await releaseDatabase(own);
  });
  return database;
}

/** The same, with another user and app, which stay active whatever becomes of the test's own. */
export async function openWithOthers(test: TestContext): Promise<Database> {
  const database = openDatabase(test);
  await Promise.all([addUser(database), addApp(database)]);
  return database;
}

/** Opens an SQLite file, whatever engine is tested; the file is closed when the test ends. */
export function openSqliteFile(test: TestContext, path: string) {
  const database = openSqliteDatabase(path);
  test.after(() => database.close());
  return database;
}

/** Opens the database at a path on the tested engine; makes it if there is none. */
export function openDatabaseAt(path: string): Database {
  if (!isOnRqlite) return openSqliteDatabase(path);
  const opening = openOnRqlite(path);
  opening.catch(() => {}); // its first use reports it
  return {
    query: async <Row>(statement: Sql) => (await opening).query<Row>(statement),
    write: async (statements) => (await opening).write(statements),
    close: async () => (await opening).close(),
  };
}

async function openOnRqlite(path: string): Promise<Database> {
  const { value } = { value: undefined, ...DATABASE_ADDRESS.parse(await locateDatabase(path)) };
  if (value === undefined) throw new Error(`no address stands for ${path}`);
  return (await createEngine({ database: value, databaseCredentials: undefined })).open();
}

/** The database, and how many rows its queries have found: in total, and the most in one query. */
export function countRows(database: Database) {
  const found = { rows: 0, most: 0 };
  const counted: Database = {
    ...database,
    async query<Row>(...asked: Parameters<Database["query"]>) {
      const rows = await database.query<Row>(...asked);
      found.rows += rows.length;
      found.most = Math.max(found.most, rows.length);
      return rows;
    },
  };
  return { counted, found };
}

/** The database, and how many rows each statement of its writes has changed. */
export function countChanges(database: Database) {
  const changes: number[] = [];
  const counted: Database = {
    ...database,
    async write(statements) {
      const changed = await database.write(statements);
      changes.push(...changed);
      return changed;
    },
  };
  return { counted, changes };
}

/** Stores a user with scopes `consumer orders`; `more` replaces members. */
export async function addUser(
  database: Database,
  more: Partial<NewUserRow> = {},
): Promise<string> {
  const createdAtMs = more.createdAtMs ?? 1_000;
  const id = more.id ?? newId("u", createdAtMs);
  const user = { username: id, phc: "$phc", scopes: ["consumer", "orders"], ...more };
  await database.write([insertUser({ ...user, id, createdAtMs })]);
  return id;
}

/** Stores a change of a user, as the backend does. */
export async function changeUser(database: Database, id: string, change: Partial<User>) {
  const user = await findUser(database, id);
  assert.ok(user);
  await database.write([updateUser(user, { ...user, ...change })]);
}

/** Stores a browser session of the user, without end, and returns its hash. */
export async function addSession(database: Database, user: string): Promise<Uint8Array> {
  const hash = sha256(newId("s", 1_000));
  await database.write([insertSession(hash, user, 1_000, Number.MAX_SAFE_INTEGER)]);
  return hash;
}

/** A confidential app with scopes `consumer orders`; `more` replaces members. */
export function sampleApp(more: Partial<App> = {}): App {
  return {
    id: newId("a", 1_000),
    name: "Harbour Orders",
    url: "https://orders.example/",
    type: "confidential",
    scopes: ["consumer", "orders"],
    grants: ["authorization_code", "refresh_token", "client_credentials"],
    redirectUris: [],
    trusted: false,
    resourceServer: false,
    rate: null,
    requirePkce: false,
    jwks: [],
    metadataUrl: null,
    owner: null,
    status: "active",
    createdAtMs: 1_000,
    ...more,
  };
}

/** Stores the app that `sampleApp` makes. */
export async function addApp(database: Database, more: Partial<App> = {}): Promise<string> {
  const app = sampleApp(more);
  await database.write([insertApp(app, undefined)]);
  return app.id;
}

/**
 * A grant of scope `consumer`, made at the beginning of 2026. Its refresh token ("first") is valid
 * for 20 hours and its access token for one hour; `more` replaces members.
 */
export function sampleGrant(
  app: string,
  user: string | null,
  more: Partial<NewGrant> = {},
): NewGrant {
  const nowMs = Date.UTC(2026, 0, 1);
  return {
    id: newId("g", nowMs),
    app,
    user,
    type: "authorization_code",
    scopes: ["consumer"],
    resource: null,
    refresh: sha256("first"),
    refreshUntilMs: nowMs + 20 * 3_600_000,
    accessUntilMs: nowMs + 3_600_000,
    ...more,
  };
}
