import { newId } from "../base/id.ts";
import type { Dispatching } from "../hosting/dispatch.ts";
import type { Services } from "../services.ts";
import { insertEvent } from "../store/events.ts";

/** Makes what modules dispatch events with. */
export function createDispatching(
  services: Pick<Services, "config" | "database" | "metrics" | "wake" | "now">,
): Dispatching {
  const { config, database, metrics, wake, now } = services;
  return {
    maxPayloadBytes: config.maxPayloadBytes,
    newEventId: () => newId("e", now()),
    async commit(events) {
      const createdAtMs = now();
      await database.write(events.map(({ subject, ...event }) =>
        insertEvent({ ...event, subject, createdAtMs })
      ));
      metrics.count("gatepost_events_dispatched_total", [], events.length);
      wake();
    },
  };
}
