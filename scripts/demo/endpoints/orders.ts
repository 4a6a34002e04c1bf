import type { Endpoint, Scopes } from "gatepost";

/** The text for users who are asked whether an app may do this for them. */
export const scopes: Scopes = { orders: "Place orders in your name" };

/** Places an order in the caller's name, and dispatches an event to all its subscriptions. */
export const placeOrder: Endpoint = {
  method: "POST",
  path: "/orders/:id",
  scope: "orders",
  emits: { "order.created": "An order was placed" },
  handle({ params, body, caller, dispatch }) {
    const item = body?.["item"];
    const quantity = body?.["quantity"];
    if (typeof item !== "string" || !Number.isSafeInteger(quantity)) {
      throw { status: 400, detail: "An order needs an item and a whole quantity." };
    }
    const order = { id: params["id"], item, quantity, by: caller.sub };
    dispatch("order.created", order);
    return { status: 201, body: order };
  },
};
