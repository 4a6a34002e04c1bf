import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import { makeFolder, openSqliteFile } from "../helpers/database.ts";
import { openEmptyOldDatabase } from "../helpers/old_database.ts";
import { NOW_MS } from "./authority_stage.ts";

test("a subscription of 0.1.0 gets the newest earlier grant that has not ended", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const old = openEmptyOldDatabase(path);
  const at = (ms: number) => newId("g", NOW_MS + ms);
  const grants = {
    older: at(1),
    newer: at(2),
    revoked: at(3),
    gone: at(4),
    tooOld: at(5),
    itself: at(6),
    maker: at(7),
    narrower: at(9),
  };
  const insert = old.prepare(
    `INSERT INTO grants (id, app, user, type, scope, refresh_until, access_until, revoked_at)
     VALUES (?, 'a1', ?, 'authorization_code', ?, 0, 1, ?)`,
  );
  insert.run(grants.older, "u1", "consumer", null);
  insert.run(grants.newer, "u1", "consumer orders", null);
  insert.run(grants.revoked, "u1", "consumer orders", 7);
  insert.run(grants.gone, "u2", "consumer", 7);
  insert.run(grants.tooOld, "u3", "consumer", null);
  insert.run(grants.itself, null, "consumer orders", null);
  insert.run(grants.maker, "u5", "consumer orders", null);
  insert.run(grants.narrower, "u5", "consumer", null);
  old.exec(`
    INSERT INTO apps (id, name, url, origin, type, scope, grants, redirect_uris, trusted,
        resource_server, status, created_at)
      VALUES ('a1', 'A', 'https://a.example', '', 'confidential', 'consumer orders', '', '[]', 0, 0,
        'active', 1);
    INSERT INTO users (id, username, password, scope, status, created_at, cut_at)
      SELECT value, value, '', 'consumer orders', 'active', 1,
        CASE value WHEN 'u3' THEN ${NOW_MS + 5} WHEN 'u1' THEN ${NOW_MS + 1} ELSE 0 END
      FROM json_each('["u1", "u2", "u3", "u4", "u5"]');
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
      SELECT 's' || key, value ->> 0, value ->> 1, 'e', 'https://a.example/' || key,
        value ->> 2, '',
        iif(value ->> 0 = 'u5', ${NOW_MS + 8}, 1)
        FROM json_each('[["u1", "login", "active"], ["u1", "a1", "paused"], ["u2", "a1", "active"],
        ["u3", "a1", "active"], ["u4", "a1", "active"], ["a1", "a1", "active"],
        ["u2", "a1", "deleted"], ["u5", "a1", "active"]]')`);
  const before = old.prepare(
    `SELECT seq, id, principal, app, event, endpoint, secret, created_at FROM subscriptions`,
  );
  const known = before.all().map((row) => ({ ...row }));
  old.close();

  const database = openSqliteFile(t, path);
  assert.deepEqual(
    await database.query(sql`SELECT seq, id, principal, app, event, endpoint, secret,
      createdAtMs AS created_at FROM subscriptions`),
    known,
  );
  const rows = await database.query<Record<string, unknown>>(
    sql`SELECT id, status, disabledReason, grantId, granted FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(rows.map((row) => Object.values(row)), [
    ["s0", "active", null, null, null],
    ["s1", "paused", null, grants.newer, '["consumer","orders"]'],
    ["s2", "disabled", "grant revoked", null, "[]"],
    ["s3", "disabled", "grant revoked", null, "[]"],
    ["s4", "active", null, null, '["consumer"]'],
    ["s5", "active", null, grants.itself, '["consumer","orders"]'],
    ["s6", "deleted", null, null, "[]"],
    ["s7", "active", null, grants.maker, '["consumer","orders"]'],
  ]);
});

test("a subscription of 0.1.0 without a grant keeps the scopes that need no consent", async (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  const old = openEmptyOldDatabase(path);
  const later = newId("g", NOW_MS + 9);
  const narrow = newId("g", NOW_MS + 1);
  old.exec(`
    INSERT INTO apps (id, name, url, origin, type, scope, grants, redirect_uris, trusted,
        resource_server, status, created_at)
      SELECT value, value, 'https://a.example', '', 'confidential', 'consumer orders backend',
        iif(value = 'typed', 'password', ''), '[]', value = 'trusted', 0, 'active', 1
        FROM json_each('["a1", "narrow", "trusted", "typed"]');
    INSERT INTO users (id, username, password, scope, status, created_at)
      SELECT value, value, '', 'consumer orders backend', 'active', 1
        FROM json_each('["allowed", "asked", "back"]');
    INSERT INTO consents (user, app, scope)
      SELECT value, 'a1', 'consumer orders' FROM json_each('["allowed", "back"]');
    INSERT INTO grants (id, app, user, type, scope, refresh_until, access_until)
      VALUES ('${later}', 'a1', 'back', 'authorization_code', 'consumer', 0, 1),
        ('${narrow}', 'narrow', NULL, 'client_credentials', 'orders', 0, 1);
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, created_at)
      SELECT key, value ->> 0, value ->> 1, 'e', 'https://a.example/' || key, 'active',
        '', ${NOW_MS + 5} FROM json_each('[["a1", "a1"], ["narrow", "narrow"],
        ["allowed", "a1"], ["asked", "a1"], ["asked", "trusted"], ["asked", "typed"],
        ["back", "a1"]]')`);
  old.close();

  const database = openSqliteFile(t, path);
  const rows = await database.query<Record<string, unknown>>(
    sql`SELECT principal, app, status, grantId, granted FROM subscriptions ORDER BY seq`,
  );
  assert.deepEqual(rows.map((row) => Object.values(row)), [
    ["a1", "a1", "active", null, '["consumer","orders","backend"]'],
    ["narrow", "narrow", "active", null, '["consumer","orders","backend"]'],
    ["allowed", "a1", "active", null, '["consumer","orders"]'],
    ["asked", "a1", "active", null, '["consumer"]'],
    ["asked", "trusted", "active", null, '["consumer","orders"]'],
    ["asked", "typed", "active", null, '["consumer","orders"]'],
    ["back", "a1", "active", later, '["consumer","orders"]'],
  ]);
});
