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

test("what is asked in one turn is one request, and the same question is asked once", async () => {
  const { query, asked } = stage();
  const rows = [1, 2, 1].map((n) => query<{ n: number }>(sql`SELECT ${n} AS n`));
  await turn();
  assert.deepEqual(asked.map(({ statements }) => statements.length), [2]);
  asked[0]?.resolve([row(1), row(2)]);
  assert.deepEqual(await Promise.all(rows), [[{ n: 1 }], [{ n: 2 }], [{ n: 1 }]]);
  void query(sql`SELECT ${1} AS n`);
  await turn();
  assert.equal(asked.length, 2, "what is known is not kept");
});

test("four requests of 64 questions are under way, and meanwhile the next gathers", async () => {
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

test("what is asked waits for five seconds at most", async (t) => {
  t.mock.method(performance, "now", () => 1_000_000);
  const { query, asked } = stage();
  void query(sql`SELECT 1`);
  await turn();
  assert.equal(asked[0]?.untilMs, 1_005_000);
});

test("a question that is wrong fails alone, as what it is", async () => {
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

test("where nobody answers all of a request fail, with why, and the next are asked", async () => {
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

test("a fault of this service is no trouble of the cluster's", async () => {
  const { query, asked } = stage();
  const fault = new TypeError("x is not a function");
  const failed = assert.rejects(query(sql`SELECT 1`), (error) => error === fault);
  await turn();
  asked[0]?.reject(fault);
  await failed;
});

test("a read goes through the log until one has, since the leader may have changed", async () => {
  const { levels, ask, changeLeader } = stage();
  for (let read = 0; read < 3; read++) await ask();
  assert.deepEqual(levels.splice(0), ["strong", "weak", "weak"]);
  changeLeader();
  for (let read = 0; read < 2; read++) await ask();
  assert.deepEqual(levels.splice(0), ["strong", "weak"]);
  // Whoever answers may have led only since a moment ago: that confirms nothing.
  await ask(changeLeader);
  await ask();
  assert.deepEqual(levels.splice(0), ["weak", "strong"]);
});

test("a read that fails confirms nothing; each attempt goes by what is known then", async () => {
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

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function levelOf(path: string): string {
  return new URLSearchParams(path.replace(/^.*\?/, "")).get("level") ?? "none";
}

interface Asked extends PromiseWithResolvers<readonly RqliteResult[]> {
  readonly pathOf: () => string;
  readonly statements: readonly string[];
  readonly untilMs: number;
}

/** A reader whose cluster answers as the test does, and the level of each request. */
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
    /** Asks something that is answered; before that, `meanwhile` happens. */
    async ask(meanwhile = () => {}): Promise<void> {
      const rows = query(sql`SELECT 1`);
      await turn();
      meanwhile();
      asked.at(-1)?.resolve([row(1)]);
      await rows;
    },
  };
}
