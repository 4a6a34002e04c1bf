import { toError } from "../base/message_of.ts";
import type { Cronjob } from "../mod.ts";
import { withFields } from "./context.ts";
import { collectEvents, type DispatchServices } from "./dispatch.ts";

/**
 * Runs the job once, then stores the events that it dispatched, together. Throws what the job
 * throws, as an Error: then only flushed events are stored. Throws Problem 503 where storing fails.
 */
export async function runCronjob(
  job: Pick<Cronjob, "name" | "run">,
  signal: AbortSignal,
  services: DispatchServices,
): Promise<void> {
  const collector = collectEvents(services, [], { source: job.name });
  try {
    const log = withFields(services.log, { job: job.name });
    await job.run({ dispatch: collector.dispatch, signal, log });
  } catch (error) {
    await Promise.allSettled([collector.close("drop")]); // a flush may still run
    throw toError(error);
  }
  await collector.close("store");
}
