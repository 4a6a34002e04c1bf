import type { Endpoint } from "gatepost";

const ITEM = { item: "lamp", colour: "green", price_cents: 4_990, in_stock: true, shelf: "C-17" };

/** The protected GET that is measured. */
export const readItem: Endpoint = {
  method: "GET",
  path: "/items/:id",
  scope: "orders",
  handle: ({ params }) => ({ id: params["id"], ...ITEM }),
};

/** The measured POST, which dispatches one event; the handler returns the body. */
export const placeOrder: Endpoint = {
  method: "POST",
  path: "/orders",
  scope: "orders",
  emits: { "order.placed": "An order was placed" },
  handle({ body, dispatch }) {
    dispatch("order.placed", body);
    return body;
  },
};

/** Dispatches an event that says when it was dispatched, in milliseconds since 1970. */
export const placeTimedOrder: Endpoint = {
  method: "POST",
  path: "/timed-orders",
  scope: "orders",
  emits: { "order.timed": "An order was placed at a known time" },
  handle({ dispatch }) {
    dispatch("order.timed", { dispatched_at: performance.timeOrigin + performance.now() });
  },
};
