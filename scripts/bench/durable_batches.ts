import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/database/sqlite_file.ts";
import type { BenchCase, Finding, Stage } from "./bench_case.ts";

/** Measures how often SQLite alone can commit durably on this machine. */
export const DURABLE_BATCH_CASES: readonly BenchCase[] = [
  { name: "commits", measure: measureCommits },
];

const GROUP = 64;

async function measureCommits({ newFolder, turnMs }: Stage): Promise<Finding[]> {
  const folder = newFolder();
  mkdirSync(folder);
  const connection = openSqlite(join(folder, "limit.db"), { readOnly: false });
  connection.exec("PRAGMA journal_mode = WAL");
  connection.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT");
  const insert = connection.prepare("INSERT INTO rows (data) VALUES (randomblob(200))");
  const commitsOf = (rows: number): number => {
    const startedMs = performance.now();
    let commits = 0;
    for (; performance.now() - startedMs < turnMs; commits++) {
      connection.exec("BEGIN IMMEDIATE");
      for (let row = 0; row < rows; row++) insert.run();
      connection.exec("COMMIT");
    }
    return commits / (performance.now() - startedMs) * 1000;
  };
  const [single, grouped] = [commitsOf(1), commitsOf(GROUP)];
  connection.close();
  return [
    { what: "durable commits of one row, SQLite alone", unit: "/s", gatepost: single },
    { what: `durable commits of ${GROUP} rows, SQLite alone`, unit: "/s", gatepost: grouped },
  ];
}
