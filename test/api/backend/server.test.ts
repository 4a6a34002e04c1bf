import assert from "node:assert/strict";
import { test } from "node:test";
import { backupOperation } from "../../../src/api/backend/server.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";
import { openDatabase } from "../../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

test("backups that two processes make at the same time have names of their own", async (t) => {
  const database = openDatabase(t);
  const files = new Set<string>();
  const backUpAs = async (file: string) => files.add(file).size;
  const caller = backendCaller(NOW_MS + 1000);
  const context = {
    request: sampleRequest(),
    caller,
    params: {},
    query: {},
    body: undefined,
    authenticateAgain: () => Promise.resolve(),
  };
  const backUp = () => backupOperation({ database, backUpAs, now: () => NOW_MS }).handle(context);
  const answers = await Promise.all([backUp(), backUp()]);
  assert.deepEqual(answers.map(({ status }) => status), [201, 201]);
  assert.equal(files.size, 2);
});
