import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext } from "node:test";
import { SCHEMA } from "../../src/database/schema.ts";
import { openRqliteDatabase } from "../../src/database/rqlite.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { RQLITE_PROCESSES } from "../../src/database/rqlite_presence.ts";
import { RQLITE_LEDGER } from "../../src/database/rqlite_ledger.ts";
import { makeFolder } from "../helpers/database.ts";
import { runRqlited } from "../helpers/rqlited.ts";
import { testDatabaseContract } from "./database_contract.ts";

const cluster = await runRqlited();
after(() => cluster.stop());
const url = cluster.nodes[0]?.url ?? "";
const address = { nodes: [new URL(url).host], isTls: false, credentials: undefined };

testDatabaseContract({
  name: "the rqlite engine",
  async open(t) {
    const response = await fetch(`${url}/db/load`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream" },
      body: newDatabase(t),
    });
    assert.equal(response.status, 200, await response.text());
    const reopen = () => {
      const database = openRqliteDatabase(createRqliteClient(address));
      t.after(() => database.close());
      return database;
    };
    return { database: reopen(), reopen };
  },
});

function newDatabase(t: TestContext): Uint8Array<ArrayBuffer> {
  const path = join(makeFolder(t), "new.db");
  using connection = new DatabaseSync(path);
  connection.exec(`${SCHEMA}; ${RQLITE_LEDGER.sql}; ${RQLITE_PROCESSES.sql}`);
  return new Uint8Array(readFileSync(path));
}
