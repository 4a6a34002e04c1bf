import type { Cronjob, CronjobContext } from "../mod.ts";
import { collectEvents, type Dispatching } from "./dispatch.ts";

/**
 * Runs the job once and then stores the events that it dispatched, together. Throws what the job
 * throws, with none stored, or what `commit` throws.
 */
export async function runCronjob(
  job: Pick<Cronjob, "run">,
  { signal, log, ...dispatching }: Dispatching & Omit<CronjobContext, "dispatch">,
): Promise<void> {
  const collector = collectEvents(dispatching);
  try {
    await job.run({ dispatch: collector.dispatch, signal, log });
  } catch (error) {
    collector.close();
    throw error;
  }
  const events = collector.close();
  if (events.length > 0) await dispatching.commit(events);
}
