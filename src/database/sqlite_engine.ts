import { dirname, join, resolve } from "node:path";
import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import { backUpSqlite } from "./backup.ts";
import { createDiskReader } from "./disk.ts";
import type { Engine } from "./engine.ts";
import { checkUsable, judgeDatabase, judgeFile } from "./judge.ts";
import { followLinks, identify, leadsTo } from "./own_files.ts";
import { restoreSqlite } from "./restore.ts";
import { createSqliteAside } from "./sqlite_aside.ts";
import { openSqliteDatabase } from "./sqlite.ts";
import { createRowReader, emptyLog, openForLook } from "./sqlite_file.ts";

/** Makes the engine of a file, or of the file that a symbolic link leads to now. */
export function createSqliteEngine(file: string): Engine {
  const given = resolve(file);
  const path = followLinks(given);
  return {
    address: given,
    exists: async () => checkUsable(given, judgeFile(path)),
    judge: async (seal) => judgeDatabase(path, seal),
    async look(read) {
      using connection = openForLook(path);
      const readRows = createRowReader(connection);
      return await read({ query: async (select) => readRows(select) });
    },
    async open(observe, log, seal) {
      const isNew = createRepeatCheck(() => performance.now());
      const database = openSqliteDatabase(given, (commit) => {
        observe?.(commit);
        const { logFailure: reason } = commit;
        if (reason === undefined || !isNew(reason)) return;
        log?.error("the log of the database cannot be emptied", { reason });
      }, seal);
      const identity = identify(path);
      const aside = createSqliteAside(path);
      const copier = createSqliteAside(path); // the check of a large copy takes many seconds
      return {
        ...database,
        async close() {
          await Promise.all([aside.close(), copier.close()]);
          await database.close();
        },
        heavy: { ...database, query: aside.query },
        backUpAs: (name) => copier.backUp(join(dirname(path), name)).finally(copier.close),
        disk: createDiskReader(dirname(path)),
        state: () => leadsTo(given, identity) ? "ok" : "replaced",
        cluster: undefined,
        forgetOverwritten() {
          try {
            return emptyLog(path) ? undefined : "others are reading the log";
          } catch (error) {
            return messageOf(error); // a full disk, say
          }
        },
      };
    },
    async backUp(target, signal) {
      checkUsable(given, judgeFile(path)); // else another program's database would be copied too
      return await backUpSqlite(path, target, signal);
    },
    restore: (source, seal, nowMs, signal) =>
      restoreSqlite(followLinks(source), path, seal, nowMs, signal),
  };
}
