import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

type Members = Readonly<Record<string, unknown>>;
/** POST to the service with a token; throws if the service refuses it. */
type Post = (path: string, body: object, token?: string) => Promise<Members>;

/** The path and event of each subscription, and the status it returns; 0 means no response. */
const SUBSCRIPTIONS = [
  { path: "/erp/hooks/orders", event: "order.packed", status: 503 },
  { path: "/fabrikam/northwind", event: "order.packed", status: 200 },
  { path: "/ledger/events", event: "order.paid", status: 204 },
  { path: "/wms/v2/events", event: "stock.low", status: 200 },
  { path: "/track/in", event: "stock.low", status: 0 },
  { path: "/books/invoices", event: "invoice.issued", status: 200 },
  { path: "/crm/gatepost", event: "customer.updated", status: 410 },
];
const EVENTS = [...new Set(SUBSCRIPTIONS.map(({ event }) => event)), "order.packed"];
const MAINTENANCE = "<h1>Maintenance</h1> The upgrade runs until 16:00 UTC";
const FIRST_EVENTS = 80;
const PACE_MS = 600;
const WRONG_PASSWORDS = 4;

/**
 * Makes traffic to see in the console: subscribers that are healthy, that fail and that never
 * respond, a flow of events, and sign-ins with wrong passwords. `token` is of a user with `backend`
 * and `consumer`. Ends when `signal` aborts.
 */
export async function makeTraffic(
  post: Post,
  token: string,
  signal: AbortSignal,
): Promise<{ close(): void }> {
  const subscribers = await startSubscribers();
  for (const { path, event } of SUBSCRIPTIONS) {
    await post("/consumer/subscription", { event, endpoint: addressOf(subscribers) + path }, token);
  }
  const apps = [["ERP connector", "https://erp.example"], ["Mobile", "https://m.example"]];
  for (const [name, url] of apps) await post("/backend/app", { name, url }, token);
  for (let count = 0; count < WRONG_PASSWORDS; count++) {
    const login = post("/consumer/login", { username: "svc-import", password: "not this one" });
    await login.catch(() => {}); // the login is meant to fail
  }
  const work = dispatch(post, token, signal).catch(() => {}); // the service has ended
  return {
    close() {
      void work;
      subscribers.closeAllConnections();
      subscribers.close();
    },
  };
}

async function dispatch(post: Post, token: string, signal: AbortSignal): Promise<void> {
  for (let count = 0; !signal.aborted; count++) {
    const name = EVENTS[count % EVENTS.length];
    const lines = [{ sku: "TEA-250", count: count % 5 }];
    const data = { id: 48_000 + count, customer: `c_${1000 + count % 50}`, lines };
    await post("/backend/event", { name, data }, token);
    await pause(count < FIRST_EVENTS ? 10 : PACE_MS, undefined, { signal });
  }
}

async function startSubscribers(): Promise<Server> {
  const statuses = new Map(SUBSCRIPTIONS.map(({ path, status }) => [path, status]));
  const server = createServer((request, response) => {
    request.resume();
    const status = statuses.get(request.url ?? "") ?? 404;
    if (status === 0) return;
    setTimeout(() => {
      response.writeHead(status, { "content-type": "text/html" });
      response.end(status >= 500 ? MAINTENANCE : "");
    }, Math.random() * 80);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function addressOf(server: Server): string {
  const address = server.address();
  return typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
}
