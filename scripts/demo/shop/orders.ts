import { announce } from "./lib/changes.ts";
import { withCustomer } from "./lib/customer.ts";
import { endpoint } from "./lib/endpoint.ts";
import { cancelOrder, findOrder, listOrders, placeOrder } from "./lib/orders.ts";
import { forgetEvents } from "./lib/outbox.ts";
import { NEW_ORDER, OF_ORDER, ORDER, ORDER_EXAMPLE } from "./lib/schemas.ts";

export const createOrder = endpoint({
  method: "POST",
  path: "/shop/orders",
  summary: "Place an order",
  scope: "shop:order",
  limit: { rate: "1000/1m", by: "caller" },
  cors: { origins: ["https://shop.example"], headers: ["X-Basket"], expose: ["X-Orders-Left"] },
  input: { body: NEW_ORDER },
  output: ORDER,
  emits: {
    "shop.order.placed": {
      description: "An order was placed",
      schema: ORDER,
      example: ORDER_EXAMPLE,
      scope: "shop:staff",
    },
  },
  before: withCustomer,
  async handle({ body, customer, dispatch, log }) {
    const { order, isNew } = placeOrder(customer, body); // committed with its event
    if (!isNew) return { status: 200, body: order };
    announce(customer.id, order);
    try {
      dispatch("shop.order.placed", order, { key: order.id });
      await dispatch.flush();
      forgetEvents([{ name: "shop.order.placed", key: order.id }]);
    } catch (error) {
      // The order is committed, and a caller that gets an error would order again.
      log.warn("the outbox will dispatch it", { order: order.id, error });
    }
    return { status: 201, headers: { location: `/shop/orders/${order.id}` }, body: order };
  },
});

export const list = endpoint({
  method: "GET",
  path: "/shop/orders",
  summary: "List one's own orders",
  scope: "shop:order",
  output: {
    type: "object",
    properties: { items: { type: "array", items: ORDER } },
    required: ["items"],
  },
  before: withCustomer,
  handle: ({ customer }) => ({ items: listOrders(customer) }),
});

export const get = endpoint({
  method: "GET",
  path: "/shop/orders/:id",
  summary: "Get an order",
  scope: "shop:order",
  input: { params: OF_ORDER },
  output: ORDER,
  before: withCustomer,
  handle: ({ params, customer }) => findOrder(customer, params.id),
});

/** The outbox alone dispatches its event, within a second, which keeps the handler short. */
export const cancel = endpoint({
  method: "POST",
  path: "/shop/orders/:id/cancel",
  summary: "Cancel an order",
  scope: "shop:order",
  input: { params: OF_ORDER },
  output: ORDER,
  emits: { "shop.order.cancelled": { description: "An order was cancelled", schema: ORDER } },
  before: withCustomer,
  handle({ params, customer }) {
    const order = cancelOrder(customer, params.id);
    announce(customer.id, order);
    return order;
  },
});
