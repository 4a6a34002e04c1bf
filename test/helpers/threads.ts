import type { TestContext } from "node:test";
import type { Worker } from "node:worker_threads";

/** The threads that this process starts until the test has ended, in order. */
export function noteThreads(test: TestContext): readonly Worker[] {
  const threads: Worker[] = [];
  const note = (worker: Worker) => void threads.push(worker);
  process.on("worker", note);
  test.after(() => process.off("worker", note));
  return threads;
}
