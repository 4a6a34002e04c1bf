/**
 * Loaded by `node --import` before the server, in each of its threads: ends the process as SIGKILL
 * does right before or right after the n-th commit of a transaction with a certain statement.
 * CRASH_WHEN is "before" or "after", CRASH_TEXT a part of that statement, CRASH_COUNT is n.
 */
import { DatabaseSync, StatementSync } from "node:sqlite";

const { CRASH_WHEN: when, CRASH_TEXT: text = "", CRASH_COUNT: count = "1" } = process.env;

if (when !== undefined) watchCommits();

function watchCommits(): void {
  const prepare = DatabaseSync.prototype.prepare;
  let isInTransaction = false;
  let left = Number(count);

  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql, options) {
    const statement = Reflect.apply(prepare, this, [sql, options]);
    Object.defineProperty(statement, "run", {
      value(...params: unknown[]) {
        if (sql.includes(text)) isInTransaction = true;
        const isTarget = sql === "COMMIT" && isInTransaction && --left === 0;
        if (sql === "COMMIT") isInTransaction = false;
        if (isTarget && when === "before") endProcess();
        const result: unknown = Reflect.apply(StatementSync.prototype.run, statement, params);
        if (isTarget) endProcess();
        return result;
      },
    });
    return statement;
  };
}

function endProcess(): never {
  process.kill(process.pid, "SIGKILL");
  for (;;); // until the signal has reached this thread, too
}
