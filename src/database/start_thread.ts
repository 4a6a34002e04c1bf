import { type MessagePort, Worker, type WorkerOptions } from "node:worker_threads";
import { messageOf } from "../base/message_of.ts";

/** Starts a thread. If the system refuses, closes the transferred ports and throws EAGAIN. */
export function startThread(
  module: URL,
  options: WorkerOptions & { readonly transferList?: MessagePort[] },
): Worker {
  try {
    return new Worker(module, options);
  } catch (cause) {
    for (const port of options.transferList ?? []) port.close();
    const error = new Error(`No thread can be started: ${messageOf(cause)}`);
    throw Object.assign(error, { code: "EAGAIN", syscall: "clone" });
  }
}
