import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { openSharedDatabase, serveWrites } from "../../src/database/shared_database.ts";
import { makeFolder, openDatabase } from "../helpers/database.ts";
import { testDatabaseContract } from "./database_contract.ts";

testDatabaseContract({
  name: "a database shared with another thread",
  open(t) {
    const path = join(makeFolder(t), "gatepost.db");
    return { database: share(t, path).shared, reopen: () => share(t, path).shared };
  },
});

function share(t: TestContext, path: string) {
  const own = openDatabase(t, path);
  const { port1, port2 } = new MessageChannel();
  serveWrites(own, port1);
  const shared = openSharedDatabase(path, port2);
  t.after(() => shared.close());
  return { own, shared, port: port1 };
}

const put = (name: string) => sql`INSERT INTO settings (name, value) VALUES (${name}, ${name})`;
const names = async (database: Database) =>
  (await database.query<{ name: string }>(sql`SELECT name FROM settings ORDER BY name`))
    .map(({ name }) => name);

test("what one thread has stored the other reads at once, both ways", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  await shared.write([put("a")]);
  assert.deepEqual(await names(own), ["a"]);
  await own.write([put("b")]);
  assert.deepEqual(await names(shared), ["a", "b"]);
});

test("close() finishes the writes it was given, and leaves the writer's database", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  const writes = [shared.write([put("a")]), shared.write([put("b")])];
  await shared.close();
  await Promise.all(writes);
  await own.write([put("c")]);
  assert.deepEqual(await names(own), ["a", "b", "c"]);
});

test("where the writer's end is gone, writes fail and do not wait for ever", async (t) => {
  const { shared, port } = share(t, join(makeFolder(t), "gatepost.db"));
  port.close();
  await assert.rejects(shared.write([put("a")]), UnavailableError);
});

test("a writer's database that is closed is said to be unavailable", async (t) => {
  const { own, shared } = share(t, join(makeFolder(t), "gatepost.db"));
  await own.close();
  await assert.rejects(shared.write([put("a")]), UnavailableError);
});
