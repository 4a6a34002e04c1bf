import assert from "node:assert/strict";
import { test } from "node:test";
import { changePassword, makePersonalToken } from "../../../src/api/consumer/account_acts.ts";
import { createPasswordHasher } from "../../../src/base/password.ts";
import { sql } from "../../../src/database/sql.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { deleteUser, findUser, revokeTokensOfUser } from "../../../src/store/users.ts";
import { configOf } from "../../helpers/config.ts";
import { addUser, openDatabase } from "../../helpers/database.ts";

test("no personal token is made for an ended login, or beyond 100 tokens", async (t) => {
  const database = openDatabase(t);
  const sub = await addUser(database);
  const caller = { sub, clientId: "login", scopes: ["consumer"] };
  const actor = { caller, request: { address: "192.0.2.1" } };
  const tokens = { makePersonalToken: (id: string) => `gpat_${id}` };
  const make = (isIn = sql`TRUE`) => {
    const given = { name: "script", scopes: ["consumer"], expires_in: 3600 };
    return makePersonalToken(actor, given, isIn, { database, tokens, now: Date.now });
  };
  await assert.rejects(make(sql`FALSE`), { code: "conflict", message: /login has just ended/ });
  for (let count = 0; count < 100; count++) await make();
  await assert.rejects(make(), { code: "limit", message: /^There are 100 personal tokens/ });
  await database.write(revokeTokensOfUser(sub, Date.now() - 1, 3_600_000));
  await assert.doesNotReject(make(), "a new password has ended all of them");
});

test("a password change during which the user is deleted is 404 and not audited", async (t) => {
  const database = openDatabase(t);
  const sub = await addUser(database);
  const user = await findUser(database, sub);
  assert.ok(user);
  const services = {
    database,
    now: Date.now,
    wake: () => {},
    config: configOf({}),
    revocations: await loadRevocations(database, Date.now),
    passwordLogin: {
      check: async () => ({
        user: { ...user, phc: "$phc", passwordUntilMs: null, passwordPrinted: null },
        sinceMs: Date.now(),
        uses: [],
      }),
    },
    hasher: {
      ...createPasswordHasher(1),
      async hash() {
        await database.write([deleteUser(sub)]);
        return "$new";
      },
    },
  };
  const actor = { caller: { sub, clientId: "login" }, request: { address: "192.0.2.1" } };
  const change = changePassword(actor, { current: "old password", new: "new password" }, services);
  await assert.rejects(change, { status: 404 });
  assert.deepEqual(await database.query(sql`SELECT action FROM audit`), []);
});
