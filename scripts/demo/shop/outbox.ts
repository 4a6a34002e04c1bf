import type { Cronjob } from "gatepost";
import { forgetEvents, listWaiting } from "./lib/outbox.ts";

/**
 * Dispatches what the shop has noted. Killed anywhere, it does so again: the key makes it the same
 * event.
 */
export const outbox: Cronjob = {
  name: "shop.outbox",
  every: "1s",
  async run({ dispatch }) {
    const waiting = listWaiting();
    for (const { name, key, data } of waiting) dispatch(name, JSON.parse(data), { key });
    await dispatch.flush();
    forgetEvents(waiting);
  },
};
