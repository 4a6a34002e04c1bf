import type { Endpoint, Scopes } from "gatepost";

export const scopes: Scopes = { orders: { description: "Place orders" } };

/** Dispatches an event for each number. */
export const placeOrders: Endpoint<{ readonly numbers: readonly number[] }> = {
  method: "POST",
  path: "/orders",
  scope: "orders",
  emits: { "order.placed": "An order was placed" },
  idempotent: true,
  handle({ body, dispatch }) {
    for (const n of body.numbers) dispatch("order.placed", { n });
    return { status: 202, body: {} };
  },
};

/** Responds without the database. */
export const listOrders: Endpoint = {
  method: "GET",
  path: "/orders",
  scope: "orders",
  handle: () => ({ items: [] }),
};
