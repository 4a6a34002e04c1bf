import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { backUpSqlite } from "./backup.ts";
import { createDiskReader } from "./disk.ts";
import type { Engine } from "./engine.ts";
import { judgeDatabase } from "./judge.ts";
import { identify } from "./own_files.ts";
import { acquirePresence } from "./presence.ts";
import { restoreSqlite } from "./restore.ts";
import { openSharedDatabase } from "./shared_database.ts";
import type { Sql } from "./sql.ts";
import { createSqliteAside } from "./sqlite_aside.ts";
import { openSqliteDatabase } from "./sqlite.ts";
import { emptyLog, openForLook } from "./sqlite_file.ts";

/** Makes the engine of an SQLite file. */
export function createSqliteEngine(file: string): Engine {
  const path = resolve(file);
  return {
    address: path,
    folders: [dirname(path)],
    exists: async () => existsSync(path),
    judge: async (seal) => judgeDatabase(path, seal),
    async look(read) {
      using connection = openForLook(path);
      const query = async <Row>({ sql, params }: Sql) =>
        connection.prepare(sql).all(...params) as Row[];
      return await read({ query });
    },
    async open(observe) {
      const database = openSqliteDatabase(path, observe);
      const identity = identify(path);
      const aside = createSqliteAside(path);
      return {
        ...database,
        async close() {
          await aside.close();
          await database.close();
        },
        heavy: { ...database, query: aside.query },
        backUpAs: (name) => aside.backUp(join(dirname(path), name)),
        disk: createDiskReader(dirname(path)),
        state: () => identify(path) === identity ? "ok" : "replaced",
        forgetOverwritten: () => emptyLog(path) ? undefined : "others are reading the log",
      };
    },
    openInThread(port) {
      if (port === undefined) throw new Error("The database's writer has given no port");
      return openSharedDatabase(path, port);
    },
    acquirePresence: (_database, name) => acquirePresence(path, name),
    backUp: (target, options) => backUpSqlite(path, target, options),
    restore: (source, seal, nowMs, options) => restoreSqlite(source, path, seal, nowMs, options),
  };
}
