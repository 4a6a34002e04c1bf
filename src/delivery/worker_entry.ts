import { parentPort, workerData } from "node:worker_threads";
import { importQuickly } from "../base/quick_import.ts";
import { freeStartMemory } from "../base/start_memory.ts";

// What worker.ts starts as a thread.
if (parentPort) {
  const { runWorker } = await importQuickly(() => import("./worker_thread.ts"));
  await runWorker(parentPort, workerData);
  freeStartMemory();
}
