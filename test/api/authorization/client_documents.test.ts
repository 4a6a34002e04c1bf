import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientDocuments } from "../../../src/api/authorization/client_documents.ts";
import { Problem } from "../../../src/base/problem.ts";

const URL = "https://client.example/app";
const DAY_MS = 86_400_000;

function open() {
  const stage = { nowMs: Date.UTC(2026, 10, 23), fetches: 0 };
  const document = { client_id: URL, client_name: "App", redirect_uris: ["http://localhost/cb"] };
  const documents = createClientDocuments({
    fetchDocument: async () => {
      stage.fetches++;
      return { document, freshMs: DAY_MS };
    },
    now: () => stage.nowMs,
  });
  const find = async () => assert.ok(!("reason" in await documents.find(URL, "192.0.2.1")));
  return { stage, find, documents };
}

test("a document is fetched once while it is fresh, and again after that", async () => {
  const { stage, find } = open();
  await Promise.all([find(), find()]);
  stage.nowMs += DAY_MS - 1;
  await find();
  assert.equal(stage.fetches, 1);
  stage.nowMs += 1;
  await find();
  assert.equal(stage.fetches, 2);
});

test("a document fetched before the clock was set back is fetched again, once", async () => {
  const { stage, find } = open();
  await find();
  stage.nowMs -= 3 * DAY_MS;
  await find();
  await find();
  assert.equal(stage.fetches, 2);
});

test("in 15 minutes one address may cause 30 fetches, and all addresses 600", async () => {
  const { stage, documents } = open();
  const isRefused = (problem: unknown) => problem instanceof Problem && problem.status === 429;
  const findOther = (count: number, address: number) =>
    documents.find(`${URL}/${count}`, `192.0.2.${address}`); // describes another client: not cached
  for (let count = 0; count < 30; count++) await findOther(count, 0);
  await assert.rejects(async () => findOther(30, 0), isRefused);
  for (let count = 30; count < 600; count++) await findOther(count, Math.floor(count / 30));
  await assert.rejects(async () => findOther(600, 100), isRefused);
  assert.equal(stage.fetches, 600);
  stage.nowMs += 15 * 60_000;
  await findOther(600, 100);
  assert.equal(stage.fetches, 601);
});

test("at most 1,000 documents are cached, however many are fetched", async () => {
  let [nowMs, fetches] = [Date.UTC(2026, 10, 23), 0];
  const { find } = createClientDocuments({
    async fetchDocument(client_id) {
      fetches++;
      const document = { client_id, client_name: "App", redirect_uris: ["http://localhost/cb"] };
      return { document, freshMs: Infinity };
    },
    now: () => nowMs += 60_000, // so that no limit of fetches is reached
  });
  const findOne = async (count: number) =>
    assert.ok(!("reason" in await find(`${URL}/${count}`, "192.0.2.1")));
  for (let count = 0; count < 1_500; count++) await findOne(count);
  await findOne(500);
  assert.equal(fetches, 1_500);
  await findOne(499);
  assert.equal(fetches, 1_501, "it was evicted");
});
