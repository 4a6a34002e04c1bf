import type { Cronjob } from "../mod.ts";
import type { Services } from "../services.ts";
import { collectEvents, storeEvents } from "./dispatch.ts";

/**
 * Runs the job once and then stores the events that it dispatched, together. Throws what the job
 * throws, with none stored, or what the database throws.
 */
export async function runCronjob(
  job: Pick<Cronjob, "run">,
  signal: AbortSignal,
  services: Pick<Services, "config" | "database" | "log" | "metrics" | "wake" | "now">,
): Promise<void> {
  const collector = collectEvents(services);
  try {
    await job.run({ dispatch: collector.dispatch, signal, log: services.log });
  } catch (error) {
    collector.close();
    throw error;
  }
  const events = collector.close();
  if (events.length > 0) await storeEvents(events, services);
}
