import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { revokeGrant } from "../../src/store/grant_end.ts";
import { insertGrant } from "../../src/store/grants.ts";
import {
  findPersonalCaller,
  insertPersonalToken,
  isCallerActive,
} from "../../src/store/personal_tokens.ts";
import { revocation } from "../../src/store/revocations.ts";
import { addUser, changeUser, openDatabase, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const UNTIL_MS = NOW_MS + 3_600_000;
const HASH = sha256("token");

/** Stores a personal token where `isIn` holds. */
function make(user: string, isIn: Sql, scopes: readonly string[] = [], id = newId("g", NOW_MS)) {
  const grant = {
    id, app: "personal", user, type: "personal", name: "n", scopes, refreshUntilMs: 0,
    accessUntilMs: UNTIL_MS, revokedAtMs: null, lastUsedAtMs: null, status: "active",
  } as const;
  return insertPersonalToken(grant, user, HASH, isIn, NOW_MS);
}

test("a caller whose token was revoked makes no personal token", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const grant = sampleGrant("console", user, { id: newId("g", NOW_MS) });
  assert.ok(await insertGrant(database, grant));
  const isIn = isCallerActive({ grantId: grant.id, jti: "j1" });
  const end = (jti: string) => revocation(jti, UNTIL_MS, UNTIL_MS);
  const batch = [end("j2"), make(user, isIn), end("j1"), make(user, isIn)];
  assert.deepEqual(await database.write(batch), [1, 1, 1, 0]);
});

test("a personal token with a scope that its user does not have is not stored", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database, { scopes: ["orders"] });
  const batch = [["orders"], ["orders", "stock"]].map((scopes) => make(user, sql`TRUE`, scopes));
  assert.deepEqual(await database.write(batch), [1, 0]);
});

test("a personal token is found by its hash while it is valid and its user active", async (t) => {
  const database = openDatabase(t);
  const user = await addUser(database);
  const grantId = newId("g", NOW_MS);
  await database.write([make(user, sql`TRUE`, ["orders"], grantId)]);
  const find = async (nowMs = NOW_MS, hash = HASH) =>
    (await findPersonalCaller(database, { grantId, hash }, nowMs))?.sub;
  assert.equal(await find(UNTIL_MS - 1), user);
  assert.equal(await find(UNTIL_MS), undefined);
  assert.equal(await find(NOW_MS, sha256("another")), undefined);
  await changeUser(database, user, { status: "disabled" });
  assert.equal(await find(), undefined);
  await changeUser(database, user, { status: "active" });
  assert.equal(await find(), user);
  await database.write(revokeGrant(grantId, NOW_MS));
  assert.equal(await find(), undefined);
});
