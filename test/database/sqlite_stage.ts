import { join } from "node:path";
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

/** A connection to a new file, as the writer's; it is closed when the test ends. */
export function openConnection(t: TestContext, folder = makeFolder(t)) {
  const path = join(folder, "gatepost.db");
  prepareSqliteFile(path);
  const connection = openSqlite(path, { readOnly: false });
  t.after(() => connection.close());
  return { path, connection };
}
