import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import type { Refusal } from "../../src/database/database.ts";
import { prepareSqliteFile } from "../../src/database/migrate.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { openSqlite } from "../../src/database/sqlite_file.ts";
import { makeFolder } from "../helpers/database.ts";

/** A new database, which is closed when the test ends, its path and the refusals of its commits. */
export function openFile(t: TestContext) {
  const path = join(makeFolder(t), "gatepost.db");
  const refusals: (Refusal | undefined)[] = [];
  const database = openSqliteDatabase(path, ({ refusal }) => void refusals.push(refusal));
  t.after(() => database.close());
  return { database, path, refusals };
}

/** The path of a new file, which nobody has open. */
export function newFile(t: TestContext, folder = makeFolder(t)): string {
  const path = join(folder, "gatepost.db");
  prepareSqliteFile(path);
  return path;
}

/** A connection to a new file, as the writer's; it is closed when the test ends. */
export function openConnection(t: TestContext, folder?: string) {
  const path = newFile(t, folder);
  const connection = openSqlite(path, { readOnly: false });
  t.after(() => connection.close());
  return { path, connection };
}

/** Runs SQL on a file through a connection with SQLite's defaults. */
export function run(path: string, text: string): void {
  using connection = new DatabaseSync(path);
  connection.exec(text);
}

export function pragmas(path: string, names: readonly string[]): unknown[] {
  using connection = new DatabaseSync(path);
  return names.map((name) => connection.prepare(`PRAGMA ${name}`).get()?.[name]);
}

export function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}
