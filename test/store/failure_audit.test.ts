import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { findValue } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { AUDIT_LIST, trimAudit } from "../../src/store/audit.ts";
import { listPart } from "../../src/store/list.ts";
import { createFailureAudit, type FailureAudit } from "../../src/store/failure_audit.ts";
import { openDatabase } from "../helpers/database.ts";
import { numbers } from "../helpers/numbers.ts";

const START_MS = Date.UTC(2040, 0, 1);
const ANY = {
  actor: undefined,
  action: undefined,
  target: undefined,
  sinceMs: undefined,
  untilMs: undefined,
};

interface Book {
  nowMs: number;
  readonly failures: FailureAudit;
  fail(address: string, target?: string): void;
  /** Flushes, and counts what is stored. */
  count(): Promise<number>;
  trim(keep: number, limit: number): Promise<void>;
  /** The targets that are stored, newest first. */
  targets(): Promise<string[]>;
}

async function setUp(t: TestContext, keep = 1000): Promise<Book> {
  const database = openDatabase(t);
  const list = async () => {
    const page = await listPart(database, AUDIT_LIST, { ...ANY, limit: 1000 });
    return page.items;
  };
  let book: Book | undefined;
  const failures = createFailureAudit(database, () => book?.nowMs ?? START_MS, keep);
  book = {
    nowMs: START_MS,
    failures,
    fail(address, target = "u1") {
      const failure = { actor: "anonymous", action: "user.login_failed", target, address };
      failures.record(address, failure);
    },
    async count() {
      await failures.flush();
      return (await list()).length;
    },
    async trim(keep, limit) {
      await database.write([trimAudit("user.login_failed", keep, limit)]);
    },
    async targets() {
      return (await list()).map(({ target }) => target);
    },
  };
  return book;
}

test("at most the configured number of failures is kept, even without a purge", async (t) => {
  const book = await setUp(t, 3);
  for (const [index, target] of ["u1", "u2", "u3", "u4", "u5"].entries()) {
    book.nowMs = START_MS + index;
    book.fail("192.0.2.1", target);
    await book.count();
  }
  assert.deepEqual(await book.targets(), ["u5", "u4", "u3"]);
});

test("by default 100,000 failures of an action are kept", async (t) => {
  const database = openDatabase(t);
  await database.write([sql`${numbers(100_005)}
    INSERT INTO audit (id, actor, action, target)
    SELECT ${idBound("t", START_MS - 1)} || printf('%06d', i), 'u1', 'user.login_failed', i
    FROM n`]);
  const failures = createFailureAudit(database, () => START_MS);
  const failure = { actor: "anonymous", action: "user.login_failed", target: "u1" } as const;
  failures.record("192.0.2.1", { ...failure, address: "192.0.2.1" });
  await failures.flush();
  assert.equal(await findValue(database, sql`SELECT count(*) AS count FROM audit`), 100_000);
});

test("a failure is stored by the next flush, and not before it", async (t) => {
  const book = await setUp(t);
  book.fail("192.0.2.1");
  assert.deepEqual(await book.targets(), []);
  assert.equal(await book.count(), 1);
  assert.equal(await book.count(), 1);
});

test("the same failure from the same address is stored once a minute", async (t) => {
  const book = await setUp(t);
  for (let second = 0; second < 60; second++) {
    book.fail("192.0.2.1");
    assert.equal(await book.count(), 1);
    book.nowMs += 1000;
  }
  book.fail("192.0.2.1");
  assert.equal(await book.count(), 2);
});

test("failures from other addresses and of other accounts are stored separately", async (t) => {
  const book = await setUp(t);
  book.fail("192.0.2.1");
  book.fail("192.0.2.2");
  book.fail("192.0.2.1", "u2");
  assert.equal(await book.count(), 3);
});

test("of a flood a hundred failures are stored at once, then one a second", async (t) => {
  const book = await setUp(t);
  let address = 0;
  const flood = () => {
    for (let i = 0; i < 500; i++) book.fail(`2001:db8::${(address++).toString(16)}`);
  };
  flood();
  assert.equal(await book.count(), 100);
  flood();
  assert.equal(await book.count(), 100);
  book.nowMs += 10_000;
  flood();
  assert.equal(await book.count(), 110);
});

test("a failure that the database refuses is stored later, and once", async (t) => {
  const database = openDatabase(t);
  let nowMs = START_MS;
  let error: Error | undefined = new UnavailableError("locked");
  const write: typeof database.write = (batch) =>
    error ? Promise.reject(error) : database.write(batch);
  const failures = createFailureAudit({ ...database, write }, () => nowMs);
  const fail = (target: string) =>
    failures.record(target, { actor: "a", action: "user.login_failed", target, address: null });
  for (let index = 0; index < 100; index++) fail(`u${index}`);
  for (let second = 0; second < 3; second++) {
    await assert.rejects(failures.flush(), UnavailableError);
    nowMs += 1000;
    fail("u0");
  }
  error = undefined;
  await failures.flush();
  await failures.flush();
  const { items } = await listPart(database, AUDIT_LIST, { ...ANY, limit: 1000 });
  assert.equal(items.length, 100);

  nowMs += 1000;
  fail("u200");
  error = new OutcomeUnknownError("perhaps");
  await assert.rejects(failures.flush(), OutcomeUnknownError);
  error = undefined;
  await failures.flush();
  const page = await listPart(database, AUDIT_LIST, { ...ANY, limit: 1000 });
  assert.equal(page.items.length, 100);
});

test("failures are still recorded after the clock was set back during a flood", async (t) => {
  const book = await setUp(t);
  for (let i = 0; i < 100; i++) book.fail(`192.0.2.${i}`);
  assert.equal(await book.count(), 100);
  book.nowMs -= 86_400_000;
  book.fail("192.0.2.200");
  await book.failures.flush();
  book.nowMs += 2000;
  book.fail("192.0.2.201");
  assert.equal(await book.count(), 101);
});

test("without a flood every failure is recorded after the clock was set back", async (t) => {
  const book = await setUp(t);
  await book.failures.flush();
  book.nowMs -= 3_600_000;
  for (let i = 0; i < 10; i++) book.fail(`192.0.2.${i}`);
  assert.equal(await book.count(), 10);
});

test("trimAudit() keeps the newest, and removes no more than the limit at once", async (t) => {
  const book = await setUp(t);
  for (const target of ["u1", "u2", "u3", "u4", "u5"]) {
    book.fail("192.0.2.1", target);
    await book.failures.flush();
    book.nowMs += 1000;
  }
  await book.trim(5, 10);
  assert.deepEqual(await book.targets(), ["u5", "u4", "u3", "u2", "u1"]);
  await book.trim(2, 1);
  assert.deepEqual(await book.targets(), ["u5", "u4", "u3", "u2"]);
  await book.trim(2, 10);
  assert.deepEqual(await book.targets(), ["u5", "u4"]);
});
