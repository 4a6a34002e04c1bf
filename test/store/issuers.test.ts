import assert from "node:assert/strict";
import { test } from "node:test";
import { findValue } from "../../src/database/rows.ts";
import { sql } from "../../src/database/sql.ts";
import { deletePrincipalsOf, ISSUERS, obtainPrincipal } from "../../src/store/issuers.ts";
import { countChanges, openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2040, 0, 1);
const ID = `i${"0".repeat(24)}`;

async function open(t: Parameters<typeof openDatabase>[0], principals: number) {
  const database = openDatabase(t);
  const rules = { scopes: ["a"], scopeClaim: "scope", jwtType: false, audience: null } as const;
  const made = { id: ID, status: "active", createdAtMs: NOW_MS } as const;
  const urls = { issuer: "https://id.example.com", jwksUri: "https://id.example.com/keys" };
  const subjects = JSON.stringify(Array.from({ length: principals }, (_, at) => `s${at}`));
  await database.write([
    ISSUERS.insert({ ...rules, ...made, ...urls }),
    sql`INSERT INTO principals (id, issuer, subject, status, createdAtMs)
      SELECT 'x' || printf('%024d', key), ${ID}, value, 'disabled', ${NOW_MS}
      FROM json_each(${subjects})`,
  ]);
  const count = () => findValue<number>(database, sql`SELECT count(*) FROM principals`);
  return { database, count };
}

test("very many principals are removed in steps, and none is created again", async (t) => {
  const { database, count } = await open(t, 1_700);
  const { counted, changes } = countChanges(database);
  await deletePrincipalsOf(counted, ID);
  assert.ok(Math.max(...changes) <= 500, changes.join());
  assert.ok(Number(await count()) < 500);
  assert.equal(await obtainPrincipal(database, ID, "s0", NOW_MS), undefined);
  await database.write([ISSUERS.remove(ID)]);
  assert.equal(await count(), 0);
});

test("few principals are left to be removed with their issuer", async (t) => {
  const { database, count } = await open(t, 499);
  await deletePrincipalsOf(database, ID);
  assert.equal(await count(), 499);
  assert.equal((await ISSUERS.find(database, ID))?.status, "active");
});
