import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import type { Refusal } from "../../src/database/database.ts";
import { refusalOf, resultOf } from "../../src/database/sqlite_error.ts";
import { makeFolder } from "../helpers/database.ts";

const NOISE = Buffer.alloc(4_096, "noise");

/** A database whose table allows no negative values, and a function that opens it again. */
function make(t: TestContext, options: { readonly readOnly?: boolean } = {}) {
  const path = join(makeFolder(t), "gatepost.db");
  const open = (more = {}) => {
    const connection = new DatabaseSync(path, more);
    t.after(() => connection.close());
    return connection;
  };
  const first = open();
  first.exec("CREATE TABLE t (x CHECK (x >= 0)); INSERT INTO t VALUES (1)");
  return { path, first, open, second: open(options) };
}

const TROUBLE: readonly [what: string, refusal: Refusal, fail: (t: TestContext) => unknown][] = [
  ["a lock", "locked", (t) => {
    const { first, second } = make(t);
    first.exec("BEGIN IMMEDIATE");
    second.exec("INSERT INTO t VALUES (2)");
  }],
  ["a long lock of the log's index", "locked", () => {
    throw Object.assign(new Error("locking protocol"), { errcode: 15 }); // as after ten seconds
  }],
  ["a file that may only be read", "read_only", (t) =>
    make(t, { readOnly: true }).second.exec("INSERT INTO t VALUES (2)")],
  ["a file that may not grow", "full", (t) => {
    const { first } = make(t);
    first.exec("PRAGMA max_page_count = 1; INSERT INTO t VALUES (zeroblob(99999))");
  }],
  ["a file that is no database", "damaged", (t) => {
    const { path, open } = make(t);
    writeFileSync(path, NOISE);
    open().exec("SELECT * FROM t");
  }],
  ["a damaged page", "damaged", (t) => {
    const { path, open } = make(t);
    writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, 4_096), NOISE]));
    open().exec("SELECT * FROM t");
  }],
  ["a folder that does not exist", "failing", () => new DatabaseSync("/nowhere/gatepost.db")],
];

for (const [what, refusal, fail] of TROUBLE) {
  test(`refusalOf() is \`${refusal}\` for ${what}, and resultOf() \`unavailable\``, (t) => {
    let found: unknown;
    try {
      fail(t);
    } catch (error) {
      found = error;
    }
    assert.ok(found instanceof Error, "nothing has failed");
    assert.equal(refusalOf(found), refusal);
    assert.deepEqual(resultOf(found), { kind: "unavailable", message: found.message, refusal });
  });
}

for (const [what, statement, kind] of [
  ["a broken constraint", "INSERT INTO t VALUES (-1)", "conflict"],
  ["a mistake in a statement", "INSERT INTO nowhere VALUES (1)", "error"],
] as const) {
  test(`refusalOf() is undefined for ${what}, and resultOf() \`${kind}\``, (t) => {
    const { first } = make(t);
    try {
      first.exec(statement);
      assert.fail("the row was stored");
    } catch (error) {
      assert.equal(refusalOf(error), undefined);
      assert.equal(resultOf(error).kind, kind);
    }
  });
}
