import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConflictError,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import type { RqliteClient, RqliteResult } from "../../src/database/rqlite_client.ts";
import { createRqliteReader } from "../../src/database/rqlite_reader.ts";
import { sql } from "../../src/database/sql.ts";
import { turn } from "../helpers/turn.ts";

test("queries of one event-loop turn are one request, and equal ones are sent once", async () => {
  const { query, asked } = stage();
  const rows = [1, 2, 1].map((n) => query<{ n: number }>(sql`SELECT ${n} AS n`));
  await turn();
  assert.deepEqual(asked.map(({ statements }) => statements.length), [2]);
  asked[0]?.resolve([row(1), row(2)]);
  assert.deepEqual(await Promise.all(rows), [[{ n: 1 }], [{ n: 2 }], [{ n: 1 }]]);
  void query(sql`SELECT ${1} AS n`);
  await turn();
  assert.equal(asked.length, 2, "rows are not cached");
});

test("four requests of 64 queries are in flight while the next one gathers", async () => {
  const { query, asked } = stage();
  const rows = Array.from({ length: 300 }, (_, n) => query<{ n: number }>(sql`SELECT ${n} AS n`));
  await turn();
  assert.deepEqual(asked.map(({ statements }) => statements.length), [64, 64, 64, 64]);
  const more = query<{ n: number }>(sql`SELECT ${300} AS n`);
  await turn();
  assert.equal(asked.length, 4);
  for (let request = 0; request < 5; request++) {
    const { statements, resolve } = asked[request] ?? assert.fail("not asked");
    resolve(statements.map((text) => row(JSON.parse(text)[1])));
    await turn();
  }
  assert.deepEqual(asked.map(({ statements }) => statements.length), [64, 64, 64, 64, 45]);
  const found = await Promise.all([...rows, more]);
  assert.deepEqual(found.map(([first]) => first?.n), Array.from({ length: 301 }, (_, n) => n));
});

test("a query has a deadline of five seconds", async (t) => {
  t.mock.method(performance, "now", () => 1_000_000);
  const { query, asked } = stage();
  void query(sql`SELECT 1`);
  await turn();
  assert.equal(asked[0]?.untilMs, 1_005_000);
});

test("a query that fails gets its own error, and the others get their rows", async () => {
  const { query, asked } = stage();
  const all = Promise.allSettled([1, 2, 3, 4, 5, 6].map((n) => query(sql`SELECT ${n} AS n`)));
  await turn();
  const [malformed, broken] = ["database disk image is malformed", "disk I/O error"];
  const errors = ["no such table: x", malformed, broken, "constraint failed: x"];
  asked[0]?.resolve([row(1), ...errors.map((error) => ({ error }))]);
  const reasons = (await all).map((result) => result.status === "rejected" && result.reason);
  assert.equal(reasons[0], false);
  assert.deepEqual(reasons.slice(1).map(({ constructor, message }) => [constructor, message]), [
    [Error, "no such table: x"],
    [UnavailableError, malformed],
    [UnavailableError, broken],
    [ConflictError, "constraint failed: x"],
    [Error, "There is no result"],
  ]);
});

test("all queries of a failed request get its reason, and later ones are sent", async () => {
  const { query, asked } = stage();
  const lost = new OutcomeUnknownError("lost");
  const isWhy = ({ name, message, stack }: Error) =>
    name === "UnavailableError" && message === "lost" && stack === undefined;
  const failed = [1, 2].map((n) => assert.rejects(query(sql`SELECT ${n} AS n`), isWhy));
  await turn();
  asked[0]?.reject(lost);
  await Promise.all(failed);
  const next = query<{ n: number }>(sql`SELECT ${1} AS n`);
  await turn();
  asked[1]?.resolve([row(1)]);
  assert.deepEqual(await next, [{ n: 1 }]);
});

test("an error of this program is not turned into an UnavailableError", async () => {
  const { query, asked } = stage();
  const mistake = new TypeError("x is not a function");
  const failed = assert.rejects(query(sql`SELECT 1`), (error) => error === mistake);
  await turn();
  asked[0]?.reject(mistake);
  await failed;
});

test("the first read after a possible change of leader goes through the Raft log", async () => {
  const { levels, ask, changeLeader } = stage();
  for (let read = 0; read < 3; read++) await ask();
  assert.deepEqual(levels.splice(0), ["strong", "weak", "weak"]);
  changeLeader();
  for (let read = 0; read < 2; read++) await ask();
  assert.deepEqual(levels.splice(0), ["strong", "weak"]);
  // The leader may have changed during this read, so it confirms nothing.
  await ask(changeLeader);
  await ask();
  assert.deepEqual(levels.splice(0), ["weak", "strong"]);
});

test("a failed read confirms no leader; each attempt chooses its level anew", async () => {
  const { levels, query, asked, ask, changeLeader } = stage();
  const failed = assert.rejects(query(sql`SELECT 1`), UnavailableError);
  await turn();
  asked[0]?.reject(new UnavailableError("lost"));
  await failed;
  await ask();
  const read = query(sql`SELECT 1`);
  await turn();
  changeLeader();
  const again = asked.at(-1) ?? assert.fail("not asked");
  levels.push(levelOf(again.pathOf()));
  again.resolve([row(1)]);
  await read;
  await ask();
  assert.deepEqual(levels, ["strong", "strong", "weak", "strong", "weak"]);
});

function row(n: number): RqliteResult {
  return { columns: ["n"], types: ["integer"], values: [[n]] };
}

function levelOf(path: string): string {
  return new URLSearchParams(path.replace(/^.*\?/, "")).get("level") ?? "none";
}

interface Asked extends PromiseWithResolvers<readonly RqliteResult[]> {
  readonly pathOf: () => string;
  readonly statements: readonly string[];
  readonly untilMs: number;
}

/** A reader of a cluster that the test plays, and the level of each request. */
function stage() {
  const asked: Asked[] = [];
  const levels: string[] = [];
  let changes = 0;
  const client: Pick<RqliteClient, "ask" | "leaderChanges"> = {
    leaderChanges: () => changes,
    ask(pathOf, statements, untilMs) {
      levels.push(levelOf(pathOf()));
      const waiting = Promise.withResolvers<readonly RqliteResult[]>();
      asked.push({ ...waiting, pathOf, statements, untilMs });
      return waiting.promise;
    },
  };
  const query = createRqliteReader(client);
  const changeLeader = () => void changes++;
  return {
    query,
    asked,
    levels,
    changeLeader,
    /** Runs a query, and calls `meanwhile` before its response. */
    async ask(meanwhile = () => {}): Promise<void> {
      const rows = query(sql`SELECT 1`);
      await turn();
      meanwhile();
      asked.at(-1)?.resolve([row(1)]);
      await rows;
    },
  };
}
