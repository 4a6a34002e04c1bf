import assert from "node:assert/strict";
import { test } from "node:test";
import { makePersonalToken } from "../../../src/api/consumer/account_acts.ts";
import { sql } from "../../../src/database/sql.ts";
import { revokeTokensOfUser } from "../../../src/store/users.ts";
import { addUser, openDatabase } from "../../helpers/database.ts";

test("a personal token is refused for what has ended, or for their number", async (t) => {
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
