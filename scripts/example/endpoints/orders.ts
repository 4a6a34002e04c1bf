import type { DefineEndpoint, JsonSchema, Scopes } from "gatepost";

// Gives `handle` the types of its endpoint's input, events and output.
const endpoint: DefineEndpoint = (given) => given;

// What users are asked to allow.
export const scopes: Scopes = { orders: "Place orders in your name" };

const ORDER = {
  type: "object",
  properties: {
    id: { type: "string" },
    item: { type: "string", minLength: 1, maxLength: 100 },
    count: { type: "integer", minimum: 1, default: 1 },
  },
  required: ["id", "item"],
} as const satisfies JsonSchema;

export const placeOrder = endpoint({
  method: "POST",
  path: "/orders",
  summary: "Place an order",
  scope: "orders",
  input: {
    body: {
      type: "object",
      properties: { item: ORDER.properties.item, count: ORDER.properties.count },
      required: ["item"],
    },
  },
  output: ORDER,
  emits: {
    "order.placed": {
      description: "An order was placed",
      schema: ORDER,
      example: { id: "1", item: "lamp", count: 2 },
    },
  },
  handle({ body, caller, dispatch }) {
    const order = { id: crypto.randomUUID(), ...body };
    // The event is stored before the response is sent, and only the caller's subscriptions get it.
    dispatch("order.placed", order, { subject: caller.sub });
    return { status: 201, body: order };
  },
});
