import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { startThread } from "../../src/database/start_thread.ts";
import { refuseThreads } from "../helpers/threads.ts";

test("startThread() throws EAGAIN if the system refuses, and closes the sent port", async (t) => {
  refuseThreads(t);
  const { port1, port2 } = new MessageChannel();
  const closed = once(port2, "close");
  assert.throws(
    () => startThread(new URL(import.meta.url), { transferList: [port1] }),
    (error) => {
      assert.ok(error instanceof Error);
      assert.equal(error.message, "No thread can be started: EAGAIN");
      assert.equal(error.cause, undefined, "a start would print the cause, not the message");
      // Like errors of the system: they are printed as one line without a stack.
      assert.deepEqual({ ...error }, { code: "EAGAIN", syscall: "clone" });
      return true;
    },
  );
  await closed;
});
