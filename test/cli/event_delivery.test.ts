import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { declareEvents } from "../../src/store/authority.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";

function readEvents(path: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare("SELECT name, data, subject, scopes FROM events ORDER BY id").all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

/** Stores `count` failed deliveries of one active subscription, and returns a delivery's id. */
function storeFailed(path: string, count: number): string {
  const database = new DatabaseSync(path);
  database.exec(`BEGIN;
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES ('s000000000000000000000001', 'u1', 'login', 'x', 'https://a.example/', 'active',
        'plain:x', 1);
    INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES ('e000000000000000000000001', 'x', '1', '[]', 'distributed', 1, 1);`);
  const insert = database.prepare(
    `INSERT INTO deliveries
       (id, event, subscription, status, attempt, dueAtMs, finishedAtMs, lastError)
     VALUES (?, 'e000000000000000000000001', 1, 'failed', 4, 1, 1, 'timeout')`,
  );
  const idOf = (row: number) => `d${String(row).padStart(24, "0")}`;
  for (let row = 0; row < count; row++) insert.run(idOf(row));
  database.exec("COMMIT");
  database.close();
  return idOf(0);
}

function countByStatus(path: string): Record<string, unknown> {
  const database = new DatabaseSync(path, { readOnly: true });
  const sql = "SELECT status, count(*) AS n FROM deliveries GROUP BY status";
  const rows = database.prepare(sql).all();
  database.close();
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

test("event dispatch stores data of an argument or standard input, for all or one", async (t) => {
  const cli = await openCommandLine(t);
  const { id: user } = readJson(await cli.run("user", "add", "alice", "--json"));

  const first = await cli.run("event", "dispatch", "order.created", '{"id": 7}', "--json");
  const second = await cli.runWith({ stdin: "[1, 2]\n" }, "event", "dispatch", "x", "-");
  const third = await cli.run("event", "dispatch", "x", "null", "--subject", "alice");
  const fourth = await cli.run("event", "dispatch", "x", '"a"', "--subject", String(user));

  assert.match(String(readJson(first)["id"]), /^e[0-9a-z]+$/);
  assert.deepEqual([first, second, third, fourth].map(({ code }) => code), [0, 0, 0, 0]);
  assert.deepEqual(readEvents(cli.databasePath), [
    { name: "order.created", data: '{"id":7}', subject: null, scopes: "[]" },
    { name: "x", data: "[1,2]", subject: null, scopes: "[]" },
    { name: "x", data: "null", subject: user, scopes: "[]" },
    { name: "x", data: '"a"', subject: user, scopes: "[]" },
  ]);
});

test("event dispatch with a key stores one event, and shows its id each time", async (t) => {
  const cli = await openCommandLine(t);
  const dispatch = (data: string) =>
    cli.run("event", "dispatch", "order.created", data, "--key", "7", "--json");
  const first = readJson(await dispatch("1"));
  assert.deepEqual(readJson(await dispatch("2")), first);
  assert.deepEqual(readEvents(cli.databasePath).map(({ data }) => data), ["1"]);
});

test("event dispatch applies the scopes that a server has declared for the event", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  const database = openSqliteDatabase(cli.databasePath);
  await database.write([declareEvents([{ name: "order.audited", scope: ["orders", "audit"] }])]);
  await database.close();

  await cli.run("event", "dispatch", "order.audited", "1");

  assert.deepEqual(readEvents(cli.databasePath).map(({ scopes }) => scopes), [
    '["orders","audit"]',
  ]);
});

/** Arguments, and the exit code: 2 for a wrong value, 1 for an unknown subject. */
const REFUSED: readonly (readonly [args: readonly string[], code: number])[] = [
  [["x", "{"], 2],
  [["x", ""], 2],
  [["x", "{} {}"], 2],
  [["x", '1, "subject": "u1"'], 2],
  [["x", '{"__proto__": 1}'], 2],
  [["x", "1e999"], 2],
  [["x", "[9007199254740993]"], 2],
  [["a b", "1"], 2],
  [["gatepost.x", "1"], 2],
  [["x", "1", "--subject", "nobody"], 1],
];

test("event dispatch refuses wrong JSON, names and subjects, and stores nothing", async (t) => {
  const cli = await openCommandLine(t);
  for (const [args, code] of REFUSED) {
    const refused = await cli.run("event", "dispatch", ...args);

    assert.deepEqual([refused.code, refused.stdout], [code, ""], args.join(" "));
  }
  assert.deepEqual(readItems(await cli.run("event", "list", "--json")), []);
});

test("event list filters by name and status", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("event", "dispatch", "a", "1");
  await cli.run("event", "dispatch", "b", "1");

  const named = readItems(await cli.run("event", "list", "--name", "a", "--json"));
  const pending = await cli.run("event", "list", "--status", "pending");
  const none = await cli.run("event", "list", "--status", "distributed");
  const wrong = await cli.run("event", "list", "--status", "gone");

  assert.deepEqual(named.map(({ name }) => name), ["a"]);
  assert.match(pending.stdout, /^ID +NAME +STATUS +SUBJECT +CREATED\ne\w+ +b +pending +- /);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", "There are none.\n"]);
  assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
});

test("delivery resend sends one failed delivery again, and no other", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  const id = storeFailed(cli.databasePath, 3);

  const resent = await cli.run("delivery", "resend", id);
  const again = await cli.run("delivery", "resend", id);
  const unknown = await cli.run("delivery", "resend", "d1");

  assert.deepEqual([resent.code, again.code, unknown.code], [0, 1, 1]);
  assert.match(again.stderr, /The delivery is pending/);
  assert.deepEqual(countByStatus(cli.databasePath), { failed: 2, pending: 1 });
});

test("delivery resend --failed resends 500, and leaves the rest to a server", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  storeFailed(cli.databasePath, 1_200);

  const counted = await cli.run("delivery", "resend", "--failed", "--dry-run", "--json");
  const none = countByStatus(cli.databasePath);
  const resent = readJson(await cli.run("delivery", "resend", "--failed", "--json"));

  assert.deepEqual([readJson(counted), none], [{ count: 1_200 }, { failed: 1_200 }]);
  const trial = await cli.run("delivery", "resend", "--failed", "--dry-run");
  assert.equal(trial.stdout, "Deliveries that would be sent again: 700\n");
  assert.deepEqual(countByStatus(cli.databasePath), { failed: 700, pending: 500 });
  const shown = readJson(await cli.run("resend", "show", String(resent["id"]), "--json"));
  const { state, status, count, done, actor } = shown;
  assert.deepEqual([state, status, count, done, actor], ["running", "failed", 1_200, 500, "cli"]);
  assert.match((await cli.run("resend", "list")).stdout, /running +failed +- +1200 +500 /);
  assert.equal((await cli.run("resend", "stop", String(resent["id"]), "--yes")).code, 0);
  assert.equal((await cli.run("resend", "stop", String(resent["id"]), "--yes")).code, 1);
});

test("delivery resend accepts an ID or --failed, and filters only with --failed", async (t) => {
  const cli = await openCommandLine(t);
  for (
    const args of [
      [],
      ["d1", "--failed"],
      ["d1", "--since", "2030-01-31T12:00:00Z"],
      ["--failed", "--status", "delivered"],
    ]
  ) {
    assert.equal((await cli.run("delivery", "resend", ...args)).code, 2, args.join(" "));
  }
});

test("delivery list shows failed deliveries with their last error", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  const id = storeFailed(cli.databasePath, 1);

  const listed = await cli.run("delivery", "list", "--status", "failed");

  const row = `^${id} +x +failed +s0+1 +1970-01-01 00:00:00Z +- +timeout *$`;
  assert.match(listed.stdout, new RegExp(row, "m"));
});
