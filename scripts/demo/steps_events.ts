import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Journey, RESEND_DELAYS_MS } from "./journey.ts";
import type { ReceivedCallback } from "./subscriber.ts";
import type { VisitorResponse } from "./visitor.ts";

const CALLBACK_MS = 5_000;
const LOOK_MS = 50;
/** Delays vary by a fifth: no resend comes before this share of its delay. */
const SHORTEST = 0.8;
/** The headers of a callback that matter to a reader. */
const SHOWN = ["content-type", "user-agent", "gatepost-event", "gatepost-attempt", "webhook-id",
  "webhook-timestamp", "webhook-signature"];

/** A protected call dispatches an event; its callback arrives, signed. */
export async function callAndDeliver(journey: Journey, token: string): Promise<void> {
  const { story, stage, visitor } = journey;
  story.step("A protected call dispatches an event", "The handler calls dispatch(name, data).");
  const order = await placeOrder(journey, token, "1001", { item: "coffee", quantity: 2 });
  const [callback] = await stage.subscriber.waitFor(1, CALLBACK_MS);
  if (callback === undefined) throw new Error("no callback");
  tellCallback(journey, callback);
  story.check("POST to the subscribed path", [callback.method, callback.path], [
    "POST",
    "/callbacks",
  ]);
  story.check("only the dispatched data", JSON.parse(callback.body), order.body);
  story.check("application/json", callback.headers["content-type"], "application/json");
  const { version, revision } = (await visitor.get("/system/about")).body;
  const userAgent = `Gatepost/${version}@${revision}`;
  story.check("User-Agent: product/version@revision", callback.headers["user-agent"], userAgent);
  story.check("the subscription's secret signed it", callback.isGenuine, true);
}

/** Three attempts fail, and the third resend succeeds. */
export async function failAndResend(
  journey: Journey,
  token: string,
  login: string,
): Promise<void> {
  const { story, stage } = journey;
  const waits = RESEND_DELAYS_MS.map((ms) => `${ms} ms`).join(", ");
  story.step("The subscriber fails three times, on purpose", `Resent after about ${waits}.`);
  stage.subscriber.forget();
  stage.subscriber.failWith(503, 500, 404);
  await placeOrder(journey, token, "1002", { item: "tea", quantity: 12 });
  const callbacks = await stage.subscriber.waitFor(4, CALLBACK_MS);
  tellTimeline(journey, callbacks);
  checkResends(journey, callbacks);
  const id = String(callbacks[0]?.headers["webhook-id"]);
  const delivery = await waitForEnd(journey, login, id);
  story.check("delivered at last", [delivery["status"], delivery["attempt"]], ["delivered", 4]);
}

/** Four attempts fail: the delivery has failed, and its record says so. */
export async function giveUp(
  journey: Journey,
  token: string,
  { login, subscription }: { readonly login: string; readonly subscription: string },
): Promise<void> {
  const { story, stage, visitor } = journey;
  story.step("After the third resend, the delivery fails", "It is kept, with every attempt.");
  stage.subscriber.forget();
  stage.subscriber.failWith(500, 500, 500, 500);
  await placeOrder(journey, token, "1003", { item: "cocoa", quantity: 1 });
  const callbacks = await stage.subscriber.waitFor(4, CALLBACK_MS);
  tellTimeline(journey, callbacks);
  checkResends(journey, callbacks);
  const id = String(callbacks[0]?.headers["webhook-id"]);
  await waitForEnd(journey, login, id);
  const address = `/consumer/subscription/${subscription}/delivery/${id}`;
  const delivery = await visitor.get(address, login);
  story.check("failed after four attempts", [delivery.body["status"], delivery.body["attempt"]], [
    "failed",
    4,
  ]);
  story.check("no fifth attempt", (await stage.subscriber.waitFor(4, 0)).length, 4);

  const resend = await visitor.post(`${address}/resend`, login);
  story.check("sent again by hand: 202", resend.status, 202);
  const resent = await stage.subscriber.waitFor(5, CALLBACK_MS);
  const last = resent[4];
  if (last !== undefined) tellTimeline(journey, [last]);
  story.check("attempt 1 again", last?.headers["gatepost-attempt"], "1");
  story.check("the same webhook-id and bytes", [last?.headers["webhook-id"], last?.body], [
    id,
    callbacks[0]?.body,
  ]);
}

async function placeOrder(
  { story, visitor }: Journey,
  token: string,
  id: string,
  order: object,
): Promise<VisitorResponse> {
  const response = await visitor.postJson(`/orders/${id}`, order, token);
  story.check("201 from the hosted endpoint", response.status, 201);
  return response;
}

function checkResends({ story }: Journey, callbacks: readonly ReceivedCallback[]): void {
  const each = (name: string) => callbacks.map(({ headers }) => headers[name]);
  story.check("attempts 1 to 4", each("gatepost-attempt"), ["1", "2", "3", "4"]);
  const [id] = each("webhook-id");
  story.check("the same webhook-id, the delivery's", [...new Set(each("webhook-id")), typeof id], [
    id,
    "string",
  ]);
  story.check("identical bytes", new Set(callbacks.map(({ body }) => body)).size, 1);
  story.check("every one signed", callbacks.map(({ isGenuine }) => isGenuine), Array(4).fill(true));
  const waited = RESEND_DELAYS_MS.map((delayMs, index) =>
    atMs(callbacks[index + 1]) - atMs(callbacks[index]) >= delayMs * SHORTEST
  );
  story.check("no attempt too early", waited, RESEND_DELAYS_MS.map(() => true));
}

/** Waits for the record, which is stored a moment after the response to the last attempt. */
async function waitForEnd(
  { stage }: Journey,
  token: string,
  id: string,
): Promise<Readonly<Record<string, unknown>>> {
  const url = `${stage.server.url}/consumer/subscription/delivery/${id}`;
  const deadline = Date.now() + CALLBACK_MS;
  for (;;) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    const delivery: Readonly<Record<string, unknown>> = await response.json();
    if (delivery["status"] !== "pending" || Date.now() > deadline) return delivery;
    await pause(LOOK_MS);
  }
}

function tellCallback({ story }: Journey, callback: ReceivedCallback): void {
  const { method, path, headers, body, status } = callback;
  story.line("⇠", `${method} ${path}`);
  for (const name of SHOWN) story.block(`${name}: ${headers[name]}`);
  story.block(body);
  story.block(`response ${status}`);
}

/** Prints one line for each attempt; equal hashes mean equal bytes. */
function tellTimeline({ story }: Journey, callbacks: readonly ReceivedCallback[]): void {
  callbacks.forEach((callback, index) => {
    const { headers, body, status } = callback;
    const before = callbacks[index - 1];
    const after = before === undefined ? "" : `+${atMs(callback) - atMs(before)} ms`;
    const digest = hash("sha256", body).slice(0, 8);
    const columns = [
      `attempt ${headers["gatepost-attempt"]}`,
      after.padStart(7),
      `webhook-id ${headers["webhook-id"]}`,
      `sha256 ${digest}…`,
      `response ${status}`,
    ];
    story.line("⇠", columns.join("  "));
  });
}

const atMs = (callback: ReceivedCallback | undefined) => callback?.atMs ?? Number.NaN;
