import assert from "node:assert/strict";
import { test } from "node:test";
import { healthOperation } from "../../../src/api/backend/series.ts";
import { newId } from "../../../src/base/id.ts";
import { sql } from "../../../src/database/sql.ts";
import { openDatabase } from "../../helpers/database.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 23, 59);

test("after midnight the health still shows the last attempt of the day before", async (t) => {
  const database = openDatabase(t);
  const [id, event] = [newId("s", NOW_MS), newId("e", NOW_MS)];
  const delivery = `d${event.slice(1)}00000001`;
  await database.write([
    sql`INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      VALUES (${id}, 'u1', 'login', 'x', 'https://a.example/', 'active', '', 1)`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      VALUES (${delivery}, ${event}, 1, 'pending', 1)`,
    sql`INSERT INTO attempts (delivery, startedAtMs, attempt, status, durationMs)
      VALUES (${delivery}, ${NOW_MS}, 1, 503, 7)`,
  ]);
  const now = [{ answer: "503", count: 1 }];
  for (const [laterMs, answers] of [[1_000, now], [60_000, []]] as const) {
    const services = { heavy: database, now: () => NOW_MS + laterMs };
    const { handle } = healthOperation("/backend", services);
    const { body } = await handle({
      request: sampleRequest(),
      params: { id },
      caller: backendCaller(Infinity),
      query: {},
      body: undefined,
      authenticateAgain: async () => {},
    });
    const health = JSON.parse(String(body));
    assert.deepEqual([health.latest?.status, health.answers], [503, answers]);
  }
});
