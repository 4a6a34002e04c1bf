import type { Cronjob } from "gatepost";
import { forgetEvents, listWaiting } from "./lib/outbox.ts";

/**
 * Dispatches the events that the shop has stored. If the process is killed, the next run repeats
 * it: the key makes it the same event.
 */
export const outbox: Cronjob = {
  name: "shop.outbox",
  every: "1s",
  async run({ dispatch, log }) {
    const taken = listWaiting().filter(({ name, key, data }) => {
      try {
        return dispatch(name, JSON.parse(data), { key });
      } catch (error) {
        log.error("an event does not match its schema", { event: name, key, error });
        return false; // it stays, but does not block the others
      }
    });
    await dispatch.flush();
    forgetEvents(taken);
  },
};
