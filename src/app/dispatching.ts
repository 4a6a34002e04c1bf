import { newId } from "../base/id.ts";
import { isPrincipalId } from "../event/event.ts";
import type { CronjobOptions } from "../hosting/cronjob.ts";
import type { Services } from "../services.ts";
import { insertEvent } from "../store/events.ts";

/** Makes what modules dispatch events with. */
export function createDispatching(
  { config, database, log, metrics, wake, now }: Pick<
    Services,
    "config" | "database" | "log" | "metrics" | "wake" | "now"
  >,
): Omit<CronjobOptions, "signal"> {
  return {
    maxPayloadBytes: config.maxPayloadBytes,
    newEventId: () => newId("e", now()),
    isPrincipal: isPrincipalId,
    log,
    async commit(dispatched) {
      const createdAtMs = now();
      await database.write(dispatched.map(({ id, name, json, subject }) =>
        insertEvent({ id, name, json, subject, createdAtMs })
      ));
      metrics.count("gatepost_events_dispatched_total", [], dispatched.length);
      wake();
    },
  };
}
