import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import {
  ConflictError,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { createLedger } from "../../src/database/rqlite_ledger.ts";
import { sql } from "../../src/database/sql.ts";
import { listen } from "../helpers/listen.ts";
import { turn } from "../helpers/turn.ts";
import { add, read, stage, url } from "./rqlite_outcome_stage.ts";

describe("a write whose response is lost", { concurrency: true }, () => {
  test("is stored once and returns its changes", async (t) => {
    const { database, next } = await stage(t);
    next("lose");
    const changes = await database.write([
      sql`INSERT INTO counters (name, n) VALUES ('lost', 1)`,
      sql`UPDATE counters SET n = n + 1 WHERE name = 'lost'`,
      sql`UPDATE counters SET n = n + 1 WHERE name = 'none'`,
    ]);
    assert.deepEqual(changes, [1, 1, 0]);
    assert.equal(await read(database, "lost"), 2);
  });

  test("is stored once even if the leader lost its leadership during the commit", async (t) => {
    const { database, next } = await stage(t);
    next("depose");
    assert.deepEqual(await add(database, "deposed"), [1]);
    assert.equal(await read(database, "deposed"), 1);
  });

  test("has an unknown outcome after five seconds, even if it was stored", async (t) => {
    const { database, always } = await stage(t);
    always("lose");
    const startedMs = performance.now();
    await assert.rejects(add(database, "unknown"), OutcomeUnknownError);
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs > 4_000 && tookMs < 6_000, `${tookMs} ms`);
    always("pass");
    assert.equal(await read(database, "unknown"), 1);
  });

  test("is never stored late: the next write blocks a copy in transit", async (t) => {
    const { database, always, releaseHeld } = await stage(t);
    always("hold");
    await assert.rejects(add(database, "late"), OutcomeUnknownError);
    always("pass");
    await add(database, "afterwards");
    assert.ok(await releaseHeld() > 0);
    assert.equal(await read(database, "late"), undefined);
    assert.equal(await read(database, "afterwards"), 1);
  });

  test("is not stored by a late copy after its group had a conflict", async (t) => {
    const { database, next, releaseHeld } = await stage(t);
    await add(database, "full");
    next("hold");
    const [, refused] = await Promise.allSettled([
      add(database, "neighbour"),
      database.write([sql`INSERT INTO counters (name, n) VALUES ('full', 0)`]),
    ]);
    assert.ok(refused.status === "rejected" && refused.reason instanceof ConflictError);
    await database.write([sql`DELETE FROM counters WHERE name = 'full'`]);
    assert.equal(await releaseHeld(), 1);
    assert.equal(await read(database, "neighbour"), 1);
  });

  test("has an unknown outcome, and is stored once, if its counts cannot be read", async (t) => {
    const { database, next, always } = await stage(t);
    always("no reads");
    next("lose");
    await assert.rejects(add(database, "uncounted"), OutcomeUnknownError);
    always("pass");
    assert.equal(await read(database, "uncounted"), 1);
  });

  test("is blocked even after a group that was in flight beside it was stored", async () => {
    const ledger = createLedger({ ask: () => Promise.resolve([]), aheadMs: () => 0 });
    const [beside, lost] = [ledger.begin(), ledger.begin()];
    lost.finish(false);
    beside.finish(true);
    const [, id]: string[] = JSON.parse(lost.head[0] ?? "");
    assert.ok(ledger.begin().head.some((statement) => statement.includes(id ?? "none")));
  });

  test("has an unknown outcome if the leader's disk is full, as others may store it", async (t) => {
    const { database, next } = await stage(t);
    next("disk full");
    await assert.rejects(add(database, "spilled"), OutcomeUnknownError);
    await add(database, "after it");
  });

  test("gets more time if it is large", async (t) => {
    const { database, asked, next } = await stage(t);
    next("slow");
    await database.write([
      sql`INSERT INTO counters (name, n) VALUES ('large', length(${"x".repeat(2 ** 22)}))`,
    ]);
    assert.equal(asked().length, 1);
  });

  test("gets its own result in a group with a conflict", async (t) => {
    const { database, next } = await stage(t);
    await add(database, "taken");
    next("lose");
    const results = await Promise.allSettled([
      add(database, "first"),
      database.write([sql`INSERT INTO counters (name, n) VALUES ('taken', 0)`]),
      database.write([sql`UPDATE counters SET n = 5 WHERE name IN ('first', 'taken')`]),
    ]);
    assert.deepEqual(results[0], { status: "fulfilled", value: [1] });
    assert.ok(results[1].status === "rejected" && results[1].reason instanceof ConflictError);
    assert.deepEqual(results[2], { status: "fulfilled", value: [2] });
  });
});

describe("a write without a leader", { concurrency: true }, () => {
  test("fails and is not stored", async (t) => {
    const { database, always } = await stage(t);
    always("leaderless");
    await assert.rejects(add(database, "refused"), (error: unknown) =>
      error instanceof UnavailableError && !(error instanceof OutcomeUnknownError));
    always("pass");
    assert.equal(await read(database, "refused"), undefined);
  });

  test("is stored if a leader appears in time, and so are later writes", async (t) => {
    const { database, always } = await stage(t);
    always("leaderless");
    const writes = [add(database, "patient"), add(database, "patient")];
    setTimeout(() => writes.push(add(database, "patient")), 500);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    always("pass");
    await Promise.all(writes);
    assert.equal(await read(database, "patient"), 3);
  });
});

test("the ledger keeps new rows although one clock is an hour wrong", async (t) => {
  const { database } = await stage(t);
  const [nowMs, elapsedMs] = [Date.now(), performance.now.bind(performance)];
  const ledger = () => database.query<{ id: string }>(sql`SELECT id FROM write_groups`);
  const firstOfMinute = idBound("w", nowMs - 60_000);
  await database.write([sql`DELETE FROM write_groups`]);
  t.mock.method(Date, "now", () => nowMs - 3_600_000);
  await ledger();
  await add(database, "behind");
  assert.deepEqual((await ledger()).map(({ id }) => id > firstOfMinute), [true], "one behind");
  t.mock.method(Date, "now", () => nowMs + 3_600_000);
  t.mock.method(performance, "now", () => elapsedMs() + 61_000); // then old rows are removed
  await ledger();
  await add(database, "ahead");
  assert.equal((await ledger()).length, 2, "one ahead");
});

test("the ledger removes rows older than ten minutes", async (t) => {
  const { database } = await stage(t);
  const elapsedMs = performance.now.bind(performance);
  const old = idBound("w", Date.now() - 11 * 60_000);
  await database.write([sql`INSERT INTO write_groups (id) VALUES (${old})`]);
  t.mock.method(performance, "now", () => elapsedMs() + 61_000);
  await add(database, "tidy");
  assert.deepEqual(await database.query(sql`SELECT id FROM write_groups WHERE id <= ${old}`), []);
});

test("1,000 simultaneous reads all return their rows", { timeout: 60_000 }, async (t) => {
  const { database } = await stage(t);
  const numbers = Array.from({ length: 1_000 }, (_, n) => n);
  const rows = numbers.map((n) => database.query<{ n: number }>(sql`SELECT ${n} AS n`));
  assert.deepEqual((await Promise.all(rows)).map(([row]) => row?.n), numbers);
});

test("without a leader requests wait five seconds in all, later ones a moment", async (t) => {
  const { database, always } = await stage(t);
  await add(database, "known");
  always("leaderless");
  const startedMs = performance.now();
  await assert.rejects(read(database, "known"), UnavailableError);
  await assert.rejects(add(database, "known"), UnavailableError);
  await assert.rejects(read(database, "known"), UnavailableError);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs > 4_500 && tookMs < 7_000, `${tookMs} ms`);
  always("pass");
  assert.equal(await read(database, "known"), 1);
  assert.deepEqual(await add(database, "known"), [1]);
});

test("a response that arrived while this process was blocked counts", async (t) => {
  const nodes = [new URL(url).host];
  const client = createRqliteClient({ nodes, isTls: false, credentials: undefined });
  t.after(client.close);
  const ask = () =>
    client.ask(() => "/db/query?level=weak", ['"SELECT 1"'], performance.now() + 5_000);
  await ask();
  const changes = client.leaderChanges();
  const asked = ask();
  await turn(); // the request is sent
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
  assert.equal((await asked).length, 1);
  assert.equal(client.leaderChanges(), changes, "the request was sent again");
});

test("a leader that responded while this process was blocked is still followed", async (t) => {
  const follower = createServer((_, response) =>
    void response.writeHead(301, { Location: url }).end());
  const nodes = [new URL(url).host, await listen(t, follower)];
  const client = createRqliteClient({ nodes, isTls: false, credentials: undefined });
  t.after(client.close);
  const ask = (path: string, forMs: number) =>
    client.ask(() => path, ['"SELECT 1"'], performance.now() + forMs);
  await ask("/db/query?level=weak", 5_000);
  const asked = ask("/db/query?level=weak", 5_000);
  await turn(); // the request is sent
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
  await asked;
  await assert.rejects(ask("/nowhere", 150)); // after this no leader is known
  assert.equal((await ask("/db/query?level=weak", 600)).length, 1);
});

test("after a connection ends the next read goes through the Raft log", async (t) => {
  const { database, asked, disconnect } = await stage(t);
  for (let round = 0; round < 3; round++) await read(database, "anything");
  assert.match(asked().at(-1) ?? "", /level=weak/);
  // First a connection after many requests, then one after a single request.
  for (let time = 0; time < 2; time++) {
    await disconnect();
    await read(database, "anything");
    assert.match(asked().at(-1) ?? "", /level=strong/);
  }
});

test("a read of a locked database fails with UnavailableError", async (t) => {
  const { database, next } = await stage(t);
  next("locked");
  await assert.rejects(read(database, "anything"), UnavailableError);
  assert.equal(await read(database, "anything"), undefined);
});

test("a write is sent again after a node refused the credentials", async (t) => {
  const { database, next } = await stage(t);
  next("denied");
  assert.deepEqual(await add(database, "allowed"), [1]);
});

test("the leader that a follower names gets this and all later requests", async (t) => {
  const { database, asked, always } = await stage(t);
  always("redirect");
  await add(database, "redirected");
  assert.equal(await read(database, "redirected"), 1);
  assert.equal(asked().length, 1);
});
