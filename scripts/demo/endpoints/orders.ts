import type { Endpoint, Scopes } from "gatepost";

/** For those who are asked whether an app may do it for them. */
export const scopes: Scopes = { orders: "Place orders in your name" };

/** Places an order in the caller's name, and tells everybody who subscribed to such news. */
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
