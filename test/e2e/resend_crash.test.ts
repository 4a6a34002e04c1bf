// On SQLite alone: its points are commits to the file.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { crashEnv, DATABASE, hasEnded, startVictim, until } from "../crash/victim.ts";
import { queryFile } from "../helpers/engine.ts";
import { PASSWORD } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";

const COUNT = 1_100;

/** Stores that many failed deliveries of one subscription. */
function storeFailed(path: string, endpoint: string): void {
  const database = new DatabaseSync(path);
  database.exec(`BEGIN;
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
      SELECT 's000000000000000000000001', id, 'login', 'x', '${endpoint}', 'active',
        'plain:whsec_AAAA', 1 FROM users;
    INSERT INTO events (id, name, data, scopes, status, lastSubscription, createdAtMs)
      VALUES ('e000000000000000000000001', 'x', '1', '[]', 'distributed', 1, 1)`);
  const insert = database.prepare(
    `INSERT INTO deliveries (id, event, subscription, status, attempt, dueAtMs, finishedAtMs)
     VALUES (?, 'e000000000000000000000001', 1, 'failed', 4, 1, ${Date.now()})`,
  );
  for (let n = 0; n < COUNT; n++) insert.run(`d${String(n).padStart(32, "0")}`);
  database.exec("COMMIT");
  database.close();
}

for (const when of ["before", "after"] as const) {
  for (const commit of [1, 2]) {
    test(`a resend killed ${when} commit ${commit} sends each delivery`, async (context) => {
      const folder = await mkdtemp(join(tmpdir(), "gatepost-resend-"));
      const receiver = await startReceiver();
      context.after(async () => {
        await receiver.close();
        await rm(folder, { recursive: true, force: true });
      });
      const path = join(folder, DATABASE);
      await (await startVictim(folder, {})).stop();
      storeFailed(path, `${receiver.url}/a`);
      const point = { kind: "commit", when, text: "UPDATE resends SET done" } as const;
      const victim = await startVictim(folder, crashEnv(point, commit));
      const api = createClient(victim.url);
      const admin = { username: "admin", password: PASSWORD };
      const login = await api.postJson("/consumer/login", admin);
      const { token }: { token: string } = JSON.parse(login.text);
      await api.postJson("/backend/delivery/resend", { status: "failed" }, bearer(token))
        .catch(() => {}); // it may die before it responds
      await until(() => hasEnded(victim.pid), "it was not killed");
      await victim.kill();
      const inFlight = queryFile(path, "SELECT id FROM deliveries WHERE claim IS NOT NULL").length;

      const server = await startVictim(folder, {});
      const isLeft = `SELECT 1 FROM deliveries WHERE status <> 'delivered'
        UNION ALL SELECT 1 FROM resends WHERE state = 'running' LIMIT 1`;
      await until(() => queryFile(path, isLeft).length === 0, "not all are sent", 60_000);
      await server.stop();
      const [resend] = queryFile(path, "SELECT state, total, done FROM resends");
      assert.deepEqual({ ...resend }, { state: "done", total: COUNT, done: COUNT });
      const ids = receiver.requests("/a").map(({ headers }) => headers["webhook-id"]);
      assert.equal(new Set(ids).size, COUNT);
      assert.ok(ids.length - COUNT <= inFlight, "only those in flight are sent twice");
    });
  }
}
