import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { scanSource } from "../../scripts/source_scan.ts";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import type { User } from "../../src/oauth/user.ts";
import { sql } from "../../src/database/sql.ts";
import { replaceAppSecret, revokeTokensOfApp, updateApp } from "../../src/store/apps.ts";
import { actorOf, type Change, insertAudit } from "../../src/store/audit.ts";
import { insertEvent } from "../../src/store/events.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { resendDeliveries } from "../../src/store/resends.ts";
import { deleteSubscription } from "../../src/store/subscription_end.ts";
import {
  insertSubscription,
  replaceSubscriptionSecret,
  updateSubscription,
} from "../../src/store/subscriptions.ts";
import { revokeTokensOfUser, updateUser } from "../../src/store/users.ts";
import { addApp, addUser, openDatabase, sampleApp, sampleGrant } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const SEAL = createSeal();
const ENTRY = { actor: "cli", action: "test", target: "target", address: null };
const APP = sampleApp();
const USER = newId("u", NOW_MS);
const MARTA: User = {
  id: USER,
  username: "marta",
  scopes: ["consumer"],
  rate: null,
  status: "active",
  createdAtMs: NOW_MS,
};
const GRANT = sampleGrant("login", USER);
const SUBSCRIPTION = {
  id: newId("s", NOW_MS),
  principal: USER,
  app: "login",
  event: "e",
  endpoint: "https://shop.example/",
  createdAtMs: NOW_MS,
  secret: "whsec_",
  grant: { id: GRANT.id, scopes: ["consumer"] },
};
const keyed = () =>
  insertEvent({
    id: newId("e", NOW_MS),
    name: "e",
    json: "1",
    subject: undefined,
    createdAtMs: NOW_MS,
    key: "k",
  });

/** Each change, and the SQL after which it changes nothing. */
const CHANGES: readonly [what: string, make: () => Change | undefined, spoil: string][] = [
  ["a user", () => updateUser(MARTA, MARTA), "DELETE FROM users"],
  ["a user's tokens", () => revokeTokensOfUser(USER, NOW_MS, 1)[0], "DELETE FROM users"],
  ["an app", () => updateApp(APP, APP), "DELETE FROM apps"],
  ["an app's tokens", () => revokeTokensOfApp(APP.id, NOW_MS, 1)[0], "DELETE FROM apps"],
  ["an app's secret", () => replaceAppSecret(APP.id, new Uint8Array(32), 0), "DELETE FROM apps"],
  ["an event with a key", keyed, `INSERT INTO events (id, name, key, scopes, status,
    lastSubscription, createdAtMs, data) VALUES ('e1', 'e', 'k', '[]', 'pending', 0, 1, '')`],
  ["a new subscription", () =>
    insertSubscription({ ...SUBSCRIPTION, id: newId("s", NOW_MS), event: "other" }, SEAL),
    "UPDATE grants SET revokedAtMs = 1"],
  ["a subscription", () => updateSubscription(SUBSCRIPTION.id, { status: "paused" }),
    "UPDATE subscriptions SET status = 'deleted'"],
  ["a subscription that has ended", () =>
    updateSubscription(SUBSCRIPTION.id, { status: "active" }, SUBSCRIPTION.grant),
    "UPDATE subscriptions SET status = 'disabled', dueAtMs = 1"],
  ["a signing secret", () => replaceSubscriptionSecret(SUBSCRIPTION.id, "new", NOW_MS, SEAL),
    "UPDATE subscriptions SET status = 'deleted'"],
  ["the end of a subscription", () => deleteSubscription(SUBSCRIPTION.id, NOW_MS)[0],
    "UPDATE subscriptions SET status = 'deleted'"],
  ["a resend", () => resendDeliveries(["d1"], NOW_MS)[0],
    "UPDATE subscriptions SET status = 'disabled'"],
];

describe("an audit entry is stored with a change, and not if nothing changes:", () => {
  for (const [what, make, spoil] of CHANGES) {
    for (const isSpoilt of [false, true]) {
      test(`${what}${isSpoilt ? ", without effect" : ""}`, async (t) => {
        const database = openDatabase(t);
        await addApp(database, APP);
        await addUser(database, MARTA);
        await insertGrant(database, GRANT);
        await database.write([
          insertSubscription(SUBSCRIPTION, SEAL),
          sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
            SELECT 'd1', 'e1', seq, 'failed', 1 FROM subscriptions`,
        ]);
        if (isSpoilt) await database.write([{ sql: spoil, params: [] }]);
        const change = make();
        assert.ok(change);
        // Between the two an engine may run a statement that changes a row, or none.
        const between = sql`UPDATE users SET phc = phc WHERE ${isSpoilt ? 1 : 0}`;
        const audit = insertAudit(ENTRY, NOW_MS, change.when);
        const [audited, , changed] = await database.write([audit, between, change]);
        assert.deepEqual([audited, changed], isSpoilt ? [0, 0] : [1, 1]);
      });
    }
  }
});

// A replicated engine runs each statement at every node: what depends on the node, on the time or
// on the statements around it would differ from node to node.
test("no SQL depends on the node, the time or the statement before it", () => {
  const forbidden = new RegExp(
    String.raw`\b(?:changes|total_changes|last_insert_rowid|random|randomblob|unixepoch|datetime|` +
      String.raw`date|time|timediff|julianday|strftime)\s*\(|\bCURRENT_|'now'`,
    "i",
  );
  let texts = 0;
  for (const name of readdirSync("src", { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    for (const { kind, text, line } of scanSource(readFileSync(join("src", name), "utf8"))) {
      if (kind !== "template" && kind !== "string") continue;
      texts++;
      // The ledger counts the changes of the statement that it puts right before it itself.
      const isLedger = text.includes("counts || changes()") && name === "database/rqlite_ledger.ts";
      // Each node is asked for its own time.
      const isClock = text.includes("unixepoch") && name === "database/rqlite_clock.ts";
      if (!isLedger && !isClock) assert.doesNotMatch(text, forbidden, `${name}:${line}`);
    }
  }
  assert.ok(texts > 1000);
});

test("an audit entry names the app that acts for a user, the console too", () => {
  const appOf = (clientId: string, sub = USER) =>
    actorOf({ sub, clientId }, { address: "192.0.2.1" }).app;
  assert.equal(appOf("console"), "console");
  assert.equal(appOf(APP.id), APP.id);
  assert.equal(appOf("login"), null);
  assert.equal(appOf(APP.id, APP.id), null, "an app that acts for itself");
});
