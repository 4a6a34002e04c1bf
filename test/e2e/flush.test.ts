// On SQLite alone: it locks the file.
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject } from "../helpers/responses.ts";

const MODULE = `
  async function flush(dispatch, { name, key }) {
    dispatch(name, {}, { key });
    await dispatch.flush();
  }
  export const caught = {
    method: "POST", path: "/caught", public: true,
    async handle({ body, dispatch }) {
      try {
        await flush(dispatch, body);
        return { isStored: true };
      } catch (error) {
        return { isStored: false, message: error.message, cause: error.cause.name };
      }
    },
  };
  export const uncaught = {
    method: "POST", path: "/uncaught", public: true,
    handle: ({ body, dispatch }) => flush(dispatch, body),
  };
  export const forgotten = {
    method: "POST", path: "/forgotten", public: true,
    handle({ body, dispatch }) { void flush(dispatch, body).catch(() => {}); },
  };
  export const failing = {
    method: "POST", path: "/failing", public: true,
    async handle({ body, dispatch }) {
      await flush(dispatch, body);
      throw new Error("failed");
    },
  };
`;
/** The time within which an error is promised, and some more for a slow machine. */
const RESPONSE_MS = 2_000 + 200;

let stage: EventStage;
before(async () => {
  stage = await startEventStage({}, { "flush.mjs": MODULE });
});
after(() => stage.stop());

const post = (path: string, name: string) =>
  stage.gatepost.api.postJson(path, { name, key: "7" });

async function countEvents(name: string): Promise<number> {
  return readItems(await stage.call("GET", `/backend/event?name=${name}`, stage.admin)).length;
}

test("flush() stores an event once for each key, even if the request fails later", async () => {
  const name = newName("e");
  assert.equal((await post("/failing", name)).status, 500);
  assert.equal(await countEvents(name), 1);
  assert.deepEqual(readObject(await post("/caught", name)), { isStored: true });
  assert.equal((await post("/uncaught", name)).status, 204);
  assert.equal((await post("/forgotten", name)).status, 204);
  assert.equal(await countEvents(name), 1);
});

test("flush() rejects in about 2 s and stores nothing while the database is locked", async () => {
  const names = { caught: newName("e"), uncaught: newName("e"), forgotten: newName("e") };
  const path = join(stage.gatepost.server.folder, "gatepost.db");
  const other = new DatabaseSync(path, { timeout: 5_000 });
  other.exec("BEGIN IMMEDIATE");
  const startedMs = performance.now();
  const [caught, ...refused] = await Promise.all([
    post("/caught", names.caught),
    post("/uncaught", names.uncaught),
    post("/forgotten", names.forgotten),
  ]);
  const tookMs = performance.now() - startedMs;
  other.exec("ROLLBACK");
  other.close();

  assert.ok(tookMs < RESPONSE_MS, `${tookMs} ms`);
  assert.deepEqual(readObject(caught), {
    isStored: false,
    message: "Storage is unavailable; what it dispatched was not stored.",
    cause: "UnavailableError",
  });
  for (const response of refused) {
    assertProblem(response, 503);
    assert.ok(Number(response.headers.get("retry-after")) > 0);
  }
  for (const name of Object.values(names)) assert.equal(await countEvents(name), 0, name);

  assert.deepEqual(readObject(await post("/caught", names.caught)), { isStored: true });
  assert.equal(await countEvents(names.caught), 1);
});
