import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";
import threads, { type Worker } from "node:worker_threads";

/** The threads that this process starts until the test has ended, in order. */
export function noteThreads(test: TestContext): readonly Worker[] {
  const threads: Worker[] = [];
  const note = (worker: Worker) => void threads.push(worker);
  process.on("worker", note);
  test.after(() => process.off("worker", note));
  return threads;
}

/** Has the system give no thread, as beyond its limit of them, until the test ends or this does. */
export function refuseThreads(test: TestContext): { end(): void } {
  const refused = test.mock.method(threads, "Worker", function () {
    throw Object.assign(new Error("EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" });
  });
  syncBuiltinESMExports();
  const end = () => {
    refused.mock.restore();
    syncBuiltinESMExports();
  };
  test.after(end);
  return { end };
}
