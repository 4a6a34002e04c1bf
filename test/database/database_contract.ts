import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { ConflictError, type Database, UnavailableError } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { put } from "../helpers/put.ts";

/** An engine under test: `open` makes a new database with Gatepost's schema at each call. */
export interface Engine {
  readonly name: string;
  /** Opens a database; `reopen` opens the same one again, beside the first or after it. */
  open(test: TestContext): OpenedDatabase | Promise<OpenedDatabase>;
}

/** A new database, and more handles of it. */
interface OpenedDatabase {
  readonly database: Database;
  reopen(): Database;
}

/** Tests what every engine must do, as the Database interface says. */
export function testDatabaseContract(engine: Engine): void {
  describe(`${engine.name}, as every engine,`, () => {
    test("returns the rows of a query by column name", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("a", "1"), put("b", "2")]);
      const rows = await database.query<{ n: string; value: string }>(
        sql`SELECT name AS n, value FROM settings ORDER BY name`,
      );
      assert.deepEqual(rows.map(({ n, value }) => [n, value]), [["a", "1"], ["b", "2"]]);
    });

    test("returns no rows for a query that finds nothing", async (t) => {
      const { database } = await engine.open(t);
      assert.deepEqual(await database.query(sql`SELECT name FROM settings`), []);
    });

    test("never runs a parameter as SQL", async (t) => {
      const { database } = await engine.open(t);
      const name = "'); DROP TABLE settings; --";
      await database.write([put(name, "?1")]);
      assert.equal(await read(database, name), "?1");
    });

    test("accepts one parameter at several places of a statement", async (t) => {
      const { database } = await engine.open(t);
      const statement = { sql: "SELECT ?2 + ?2 AS twice, ?1 AS x", params: ["", 21] };
      const rows = await database.query<{ twice: number }>(statement);
      assert.equal(rows[0]?.twice, 42);
    });

    for (const [what, value] of valueTable()) {
      test(`returns ${what}`, async (t) => {
        const { database } = await engine.open(t);
        const rows = await database.query<{ value: unknown }>(sql`SELECT ${value} AS value`);
        assert.equal(rows[0]?.value, value);
      });
    }

    test("returns stored bytes and large integers", async (t) => {
      const { database } = await engine.open(t);
      const hash = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 8));
      const untilMs = 8_640_000_000_000_000;
      await database.write([
        sql`INSERT INTO sessions (hash, user, createdAtMs, untilMs)
          VALUES (${hash}, 'u', 1, ${untilMs})`,
      ]);
      const rows = await database.query<{ hash: Uint8Array; untilMs: number }>(
        sql`SELECT hash, untilMs FROM sessions WHERE user <> '?' AND hash = ${hash}`,
      );
      assert.deepEqual(Buffer.from(rows[0]?.hash ?? []), hash);
      assert.equal(rows[0]?.untilMs, untilMs);
    });

    test("rejects a query that is not SQL, and still works", async (t) => {
      const { database } = await engine.open(t);
      await assert.rejects(database.query(sql`SELEKT 1`), isMistake);
      assert.equal((await database.query(sql`SELECT 1`)).length, 1);
    });

    test("refuses a query that writes", async (t) => {
      const { database } = await engine.open(t);
      await assert.rejects(database.query(put("a", "b")));
      await assert.rejects(database.query(sql`DELETE FROM settings RETURNING name`));
      assert.equal(await count(database), 0);
    });

    test("returns how many rows each statement of a write changed", async (t) => {
      const { database } = await engine.open(t);
      const changes = await database.write([
        put("a", "1"),
        put("b", "1"),
        sql`UPDATE settings SET value = '2'`,
        sql`UPDATE settings SET value = '3' WHERE name = 'none'`,
        sql`INSERT INTO settings (name, value) VALUES ('a', 'x') ON CONFLICT DO NOTHING`,
        sql`DELETE FROM settings WHERE name = ${"a"}`,
      ]);
      assert.deepEqual(changes, [1, 1, 2, 0, 0, 1]);
    });

    test("accepts an empty batch", async (t) => {
      const { database } = await engine.open(t);
      assert.deepEqual(await database.write([]), []);
    });

    test("lets a statement see the changes of earlier ones in its batch", async (t) => {
      const { database } = await engine.open(t);
      const changes = await database.write([
        put("a", "1"),
        sql`INSERT INTO settings (name, value) SELECT 'b', value FROM settings WHERE name = 'a'`,
      ]);
      assert.deepEqual(changes, [1, 1]);
    });

    test("shows what a write stored to every later query", async (t) => {
      const { database } = await engine.open(t);
      for (let round = 0; round < 20; round++) {
        await database.write([put(`k${round}`, String(round))]);
        assert.equal(await read(database, `k${round}`), String(round));
      }
    });

    test("stores nothing of a batch with a conflict, and throws ConflictError", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("taken", "first")]);
      await assert.rejects(
        database.write([put("a", "1"), put("taken", "second"), put("b", "1")]),
        ConflictError,
      );
      assert.deepEqual(await names(database), ["taken"]);
      assert.equal(await read(database, "taken"), "first");
    });

    for (const [what, statement] of constraintTable()) {
      test(`throws ConflictError for ${what}`, async (t) => {
        const { database } = await engine.open(t);
        await assert.rejects(database.write([put("a", "1"), statement]), ConflictError);
        assert.equal(await count(database), 0);
      });
    }

    test("puts no given value into a ConflictError", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("hunter2", "hunter3")]);
      await assert.rejects(database.write([put("hunter2", "hunter3")]), (error: unknown) => {
        assert.ok(error instanceof ConflictError);
        assert.doesNotMatch(error.message, /hunter/);
        return true;
      });
    });

    test("stores nothing of a batch with wrong SQL, and still works", async (t) => {
      const { database } = await engine.open(t);
      const mistakes = [sql`INSERT INTO nowhere VALUES (1)`, sql`UPDATE settings SET x = ?9`];
      for (const statement of mistakes) {
        await assert.rejects(database.write([put("a", "1"), statement]), isMistake);
      }
      assert.equal(await count(database), 0);
      assert.deepEqual(await database.write([put("a", "1")]), [1]);
    });

    test("undoes only the batch that fails and stores its neighbours", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("taken", "first")]);
      const results = await Promise.allSettled([
        database.write([put("a", "1")]),
        database.write([put("b", "1"), put("taken", "second")]),
        database.write([put("c", "1"), sql`no SQL`]),
        database.write([put("d", "1")]),
      ]);
      assert.deepEqual(results.map(({ status }) => status), [
        "fulfilled",
        "rejected",
        "rejected",
        "fulfilled",
      ]);
      assert.deepEqual(await names(database), ["a", "d", "taken"]);
    });

    test("undoes 250 simultaneous batches that fail and stores their neighbours", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("taken", "first")]);
      const batches = Array.from({ length: 260 }, (_, at) =>
        database.write(at % 26 === 25 ? [put(`k${at}`, "1")] : [put("taken", "second")])
      );
      const results = await Promise.allSettled(batches);
      const conflicts = results.filter((result) =>
        result.status === "rejected" && result.reason instanceof ConflictError
      );
      assert.deepEqual([conflicts.length, await count(database)], [250, 11]);
    });

    test("runs batches in the order they were given", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("a", "")]);
      await Promise.all(Array.from({ length: 50 }, (_, round) =>
        database.write([
          sql`UPDATE settings SET value = value || ${`${round},`} WHERE name = 'a'`,
        ])
      ));
      const expected = Array.from({ length: 50 }, (_, round) => `${round},`).join("");
      assert.equal(await read(database, "a"), expected);
    });

    test("lets exactly one of many batches take the same row", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("code", "free")]);
      const changes = await Promise.all(Array.from({ length: 200 }, () =>
        database.write([
          sql`UPDATE settings SET value = 'taken' WHERE name = 'code' AND value = 'free'`,
        ])
      ));
      assert.equal(changes.flat().filter((changed) => changed === 1).length, 1);
    });

    test("stores 2,000 simultaneous writes", async (t) => {
      const { database } = await engine.open(t);
      const changes = await Promise.all(
        Array.from({ length: 2_000 }, (_, at) => database.write([put(`k${at}`, "1")])),
      );
      assert.ok(changes.every(([changed]) => changed === 1));
      assert.equal(await count(database), 2_000);
    });

    test("never shows half of a batch to a query", async (t) => {
      const { database } = await engine.open(t);
      await database.write([put("a", "0"), put("b", "0")]);
      let isWriting = true;
      const writing = (async () => {
        for (let round = 1; round <= 100; round++) {
          await database.write([
            sql`UPDATE settings SET value = ${String(round)} WHERE name = 'a'`,
            sql`UPDATE settings SET value = ${String(round)} WHERE name = 'b'`,
          ]);
        }
        isWriting = false;
      })();
      while (isWriting) {
        const rows = await database.query(sql`SELECT DISTINCT value FROM settings`);
        assert.equal(rows.length, 1);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await writing;
    });

    test("shows what one handle stored to the queries of another", async (t) => {
      const { database, reopen } = await engine.open(t);
      const other = reopen();
      await database.write([put("a", "1")]);
      assert.equal(await read(other, "a"), "1");
      await other.write([put("b", "2")]);
      assert.equal(await read(database, "b"), "2");
    });

    test("lets exactly one of two handles take the same row", async (t) => {
      const { database, reopen } = await engine.open(t);
      const other = reopen();
      for (let round = 0; round < 20; round++) {
        await database.write([put(`code${round}`, "free")]);
        const take = sql`UPDATE settings SET value = 'taken'
          WHERE name = ${`code${round}`} AND value = 'free'`;
        const changes = await Promise.all([database.write([take]), other.write([take])]);
        assert.deepEqual(changes.flat().sort(), [0, 1]);
      }
    });

    test("close() stores the writes before it", async (t) => {
      const { database, reopen } = await engine.open(t);
      const writes = Array.from({ length: 1_500 }, (_, at) => database.write([put(`k${at}`, "1")]));
      await database.close();
      assert.equal((await Promise.all(writes)).length, 1_500);
      assert.equal(await count(reopen()), 1_500);
    });

    test("refuses calls during and after close() with UnavailableError", async (t) => {
      const { database, reopen } = await engine.open(t);
      const before = database.write([put("before", "1")]);
      const closed = database.close();
      await assert.rejects(database.write([put("late", "1")]), UnavailableError);
      await closed;
      await before;
      await assert.rejects(database.write([put("later", "1")]), UnavailableError);
      await assert.rejects(database.query(sql`SELECT 1`), UnavailableError);
      assert.deepEqual(await names(reopen()), ["before"]);
    });

    test("close() may be called again, even at the same time", async (t) => {
      const { database } = await engine.open(t);
      const write = database.write([put("a", "1")]);
      await Promise.all([database.close(), database.close()]);
      await database.close();
      assert.deepEqual(await write, [1]);
    });
  });
}

function valueTable(): [what: string, value: string | number | null][] {
  return [
    ["null", null],
    ["0", 0],
    ["a negative number", -5],
    ["a fraction", 0.25],
    ["the largest safe integer", Number.MAX_SAFE_INTEGER],
    ["an empty text", ""],
    ["a text with a NUL", "a\u0000b"],
    ["a text with special characters", "\u00fc\u20ac\u{1f511}'\"\\\n"],
  ];
}

function constraintTable(): [what: string, statement: Sql][] {
  return [
    ["a key that exists", sql`INSERT INTO settings (name, value) VALUES ('a', '2')`],
    ["a missing value", sql`INSERT INTO settings (name, value) VALUES ('b', NULL)`],
    ["a value of another type, since tables are STRICT",
      sql`INSERT INTO codes (id, hash, app, user, scopes, redirectUri, untilMs)
        VALUES ('g', x'00', 'a', 'u', '[]', '', 'soon')`],
    ["a reference to a missing row",
      sql`INSERT INTO used_refresh_tokens (grantId, hash) VALUES ('none', x'00')`],
    ["a value that CHECK refuses",
      sql`INSERT INTO users (id, username, phc, scopes, status, createdAtMs)
        VALUES ('u', 'u', 'p', '[]', 'asleep', 0)`],
  ];
}

async function read(database: Database, name: string): Promise<string | undefined> {
  const rows = await database.query<{ value: string }>(
    sql`SELECT value FROM settings WHERE name = ${name}`,
  );
  return rows[0]?.value;
}

async function names(database: Database): Promise<string[]> {
  const rows = await database.query<{ name: string }>(sql`SELECT name FROM settings ORDER BY name`);
  return rows.map(({ name }) => name);
}

async function count(database: Database): Promise<number> {
  return (await names(database)).length;
}

/** Whether the error is a programming error: no conflict, and no failure of the engine. */
function isMistake(error: unknown): boolean {
  return error instanceof Error && !(error instanceof ConflictError) &&
    !(error instanceof UnavailableError);
}
