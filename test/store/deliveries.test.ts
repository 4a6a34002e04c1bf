import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { sql } from "../../src/database/sql.ts";
import { recordDelivered } from "../../src/store/deliveries.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = 1_900_000_000_000;
const ENDPOINT = "https://a.example/";

test("an attempt is recorded of its own delivery alone, while that is claimed", async (t) => {
  const database = openDatabase(t);
  const event = newId("e", NOW_MS);
  const names = ["own", "another", "taken over", "cancelled"] as const;
  const ids = names.map((_, index) => `d${event.slice(1)}0000000${index}`);
  const nameOf = (id: string) => names[ids.indexOf(id)];
  const rows = ids.map((id, index) => [
    id, index < 2 ? "claim" : index === 2 ? "other" : null, index < 3 ? "pending" : "cancelled",
  ]);
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${newId("s", NOW_MS)}, 'u1', 'login', 'x', ${ENDPOINT}, 'active', '', 1)`,
    sql`INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES (${event}, 'x', '1', '[]', 'distributed', 1, 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, claim, status, attempt, dueAtMs)
      SELECT value ->> 0, ${event}, 1, value ->> 1, value ->> 2, 0, 1
      FROM json_each(${JSON.stringify(rows)})`,
  ]);
  for (const delivery of ids.toReversed()) {
    await database.write(recordDelivered([{
      delivery,
      subscription: 1,
      endpoint: ENDPOINT,
      attempt: 1,
      startedAtMs: NOW_MS,
      durationMs: 1,
      meanMs: undefined,
      outcome: { kind: "response", status: 204 },
      snippet: undefined,
    }], "claim", NOW_MS));
    const attempts = await database.query<{ delivery: string }>(sql`SELECT delivery FROM attempts`);
    const moved = await database.query<{ id: string }>(
      sql`SELECT id FROM deliveries WHERE status = 'delivered'`,
    );
    const expected = ["another", "own"].slice(0, Math.max(0, 2 - ids.indexOf(delivery)));
    assert.deepEqual(attempts.map((each) => nameOf(each.delivery)).sort(), expected);
    assert.deepEqual(moved.map(({ id }) => nameOf(id)).sort(), expected);
  }
});
