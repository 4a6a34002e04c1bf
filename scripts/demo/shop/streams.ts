import { setInterval } from "node:timers";
import { listen } from "./lib/changes.ts";
import { withCustomer } from "./lib/customer.ts";
import { endpoint } from "./lib/endpoint.ts";
import { listOrders } from "./lib/orders.ts";
import type { Order } from "./lib/schemas.ts";

const MAX_WAITING = 100;

/** Server-sent events: one for each change of the caller's orders. */
export const feed = endpoint({
  method: "GET",
  path: "/shop/orders/feed",
  summary: "Follow one's own orders",
  scope: "shop:order",
  before: withCustomer,
  handle({ customer, signal }) {
    const encoder = new TextEncoder();
    let stop = (): void => {};
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const send = (text: string) => {
          // A client that reads too slowly is disconnected, and reconnects.
          if ((controller.desiredSize ?? 0) < -MAX_WAITING) {
            stop();
            return controller.close();
          }
          controller.enqueue(encoder.encode(text));
        };
        const timer = setInterval(() => send(": still here\n\n"), 15_000);
        const end = listen(customer.id, (order) => {
          send(`event: order\ndata: ${JSON.stringify(order)}\n\n`);
        });
        stop = () => {
          clearInterval(timer);
          end();
        };
        signal.addEventListener("abort", stop, { once: true });
        send(": welcome\n\n");
      },
      cancel: () => stop(),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  },
});

/** A download of any length: each line is made when the client can take it. */
export const table = endpoint({
  method: "GET",
  path: "/shop/orders/table.csv",
  summary: "Download one's own orders",
  scope: "shop:order",
  before: withCustomer,
  handle({ customer }) {
    const encoder = new TextEncoder();
    const lines = formatTable(listOrders(customer));
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const { value, done } = lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
    });
    return new Response(body, {
      headers: {
        "content-type": "text/csv; charset=utf-8",
        "content-disposition": 'attachment; filename="orders.csv"',
      },
    });
  },
});

function* formatTable(orders: readonly Order[]): Generator<string, undefined> {
  yield "id,sku,quantity,total_cents,status\r\n";
  for (const { id, sku, quantity, total_cents, status } of orders) {
    yield `${[id, sku, quantity, total_cents, status].join()}\r\n`;
  }
}
