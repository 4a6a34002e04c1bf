import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";
import threads, { type Worker } from "node:worker_threads";

/** Records, in order, the threads that this process starts until the test ends. */
export function noteThreads(test: TestContext): readonly Worker[] {
  const threads: Worker[] = [];
  const note = (worker: Worker) => void threads.push(worker);
  process.on("worker", note);
  test.after(() => process.off("worker", note));
  return threads;
}

/** Makes each start of a thread fail, as at the system's limit, until the test ends or `end()`. */
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
