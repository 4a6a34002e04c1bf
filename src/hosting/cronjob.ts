import type { CronjobContext, Logger } from "../mod.ts";
import { collectEvents, type Dispatching } from "./dispatch.ts";

/** What a run of a cronjob needs from outside. */
export interface CronjobOptions extends Dispatching {
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Runs the job once and then stores the events that it dispatched, together.
 *
 * @throws what the job throws, with none stored, or what `commit` throws
 */
export async function runCronjob(
  job: { run(context: CronjobContext): unknown },
  options: CronjobOptions,
): Promise<void> {
  const { signal, log, commit } = options;
  const collector = collectEvents(options);
  try {
    await job.run({ dispatch: collector.dispatch, signal, log });
  } catch (error) {
    collector.close();
    throw error;
  }
  const events = collector.close();
  if (events.length > 0) await commit(events);
}
