import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";

const FIXTURE = new URL("../fixtures/gatepost-0.1.0.db.gz", import.meta.url);

/** Writes the database file of 0.1.0, with rows of every kind. */
export function writeOldDatabase(path: string): void {
  writeFileSync(path, gunzipSync(readFileSync(FIXTURE)));
}

/** Writes an empty database file of 0.1.0, and opens it. */
export function openEmptyOldDatabase(path: string): DatabaseSync {
  writeOldDatabase(path);
  const old = new DatabaseSync(path);
  const tables = old.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT LIKE 'sqlite_%' AND name <> 'account_changes'`).all();
  old.exec("PRAGMA foreign_keys = OFF");
  for (const { name } of tables) old.exec(`DELETE FROM ${name}`);
  old.exec("DELETE FROM sqlite_sequence");
  return old;
}
