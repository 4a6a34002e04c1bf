import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { backupOperation } from "../../../src/api/backend/server.ts";
import { backendCaller, sampleRequest } from "../../helpers/http_request.ts";
import { openDatabase } from "../../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);

/** The operation in a new process. */
function open(t: TestContext, backUpAs: (file: string) => Promise<number>) {
  const database = openDatabase(t);
  const context = {
    request: sampleRequest(),
    caller: backendCaller(NOW_MS + 1000),
    params: {},
    query: {},
    body: undefined,
    authenticateAgain: () => Promise.resolve(),
  };
  const operation = backupOperation({ database, backUpAs, now: () => NOW_MS });
  return async () => (await operation.handle(context)).status;
}

test("backups that two processes make at the same time have different names", async (t) => {
  const files = new Set<string>();
  const backUpAs = async (file: string) => files.add(file).size;
  const [one, other] = [open(t, backUpAs), open(t, backUpAs)];
  assert.deepEqual(await Promise.all([one(), other()]), [201, 201]);
  assert.equal(files.size, 2);
});

test("a second backup is refused while one runs, and accepted after it has failed", async (t) => {
  let isFull = true;
  const backUp = open(t, async () => {
    if (isFull) throw new Error("The disk is full");
    return 1;
  });
  const first = backUp();
  await assert.rejects(backUp(), { status: 409 });
  await assert.rejects(first, /full/);
  isFull = false;
  assert.equal(await backUp(), 201);
});
