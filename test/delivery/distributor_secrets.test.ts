import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { createSeal } from "../../src/base/seal.ts";
import { sql } from "../../src/database/sql.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import { SEAL } from "../helpers/distributor_process.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { openStage, SECRET, START_MS } from "./distributor_stage.ts";

describe("a signing secret that this process cannot decrypt", () => {
  const OTHER_SEAL = createSeal(new Uint8Array(32).fill(1));

  /** A stage with one subscription, whose secret is encrypted by the other seal. */
  async function openSealedStage(t: TestContext, events: number) {
    const stage = await openStage(t);
    const id = await stage.subscribe();
    const secret = OTHER_SEAL.encrypt(SECRET, id);
    await stage.write(sql`UPDATE subscriptions SET secret = ${secret} WHERE id = ${id}`);
    await stage.dispatch(events);
    return stage;
  }

  test("is no failed attempt: a process that has the key sends the delivery", async (t) => {
    const stage = await openSealedStage(t, 1);
    await stage.runProcess({ respond: 204 });
    assert.deepEqual(await stage.counts(), { pending: 1 });
    assert.deepEqual(await stage.rows(sql`SELECT * FROM attempts`), []);
    const due = await stage.rows(sql`SELECT dueAtMs, claim FROM deliveries`);
    assert.deepEqual(due, [{ dueAtMs: START_MS + 60_000, claim: null }]);
    const ahead = stage.startProcess({ respond: 204, seal: OTHER_SEAL });
    stage.nowMs += 60_000;
    ahead.wake();
    await stage.untilDelivered(1);
    assert.deepEqual(ahead.begun.map(({ attempt }) => attempt), [1]);
  });

  test("is logged once, however many deliveries it holds up", async (t) => {
    const stage = await openSealedStage(t, 3);
    const lines: string[] = [];
    const error = (line: string) => void lines.push(line);
    await stage.runProcess({ respond: 204, log: { ...SILENT, error } });
    const due = sql`SELECT 1 FROM deliveries WHERE dueAtMs = ${START_MS + 60_000}`;
    assert.equal((await stage.rows(due)).length, 3);
    assert.deepEqual(lines, ["a delivery cannot be sent"]);
  });
});

test("both secrets sign until the old one has expired", async (t) => {
  const stage = await openStage(t);
  const id = await stage.subscribe();
  const newer = formatSigningSecret(new Uint8Array(32).fill(9));
  await stage.write(sql`UPDATE subscriptions SET oldSecret = secret,
    secret = ${SEAL.encrypt(newer, id)}, oldSecretUntilMs = ${START_MS + 1000} WHERE id = ${id}`);
  const process = stage.startProcess({ respond: 204 });
  for (const [afterMs, secrets] of [[999, [newer, SECRET]], [1, [newer]]] as const) {
    await stage.dispatch();
    await process.runAfter(afterMs);
    assert.deepEqual(process.begun.at(-1)?.secrets, secrets);
  }
});
