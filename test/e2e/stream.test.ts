import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const ENV = { GATEPOST_BASE_URL: "http://gatepost.test", GATEPOST_RESEND_DELAYS: "20ms" };

let stage: EventStage;
/** Another process on the same database. */
let other: Gatepost;
before(async () => {
  stage = await startEventStage(ENV);
  const env = { ...ENV, GATEPOST_CRON: "off" };
  other = await startGatepost({ env, folder: stage.gatepost.server.folder });
});
after(async () => {
  await other.stop();
  await stage.stop();
});

interface Seen {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Opens the stream and collects its events until the test ends or `leave` is called. */
async function watch(
  t: TestContext,
  query: string,
  { token = stage.admin, at = stage.gatepost, lastId = "" } = {},
) {
  const leaving = new AbortController();
  t.after(() => leaving.abort());
  const response = await fetch(`${at.url}/backend/stream${query}`, {
    headers: { ...bearer(token), ...lastId && { "last-event-id": lastId } },
    signal: leaving.signal,
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const seen: Seen[] = [];
  const stream = { seen, isEnded: false, leave: () => leaving.abort() };
  const read = async () => {
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const lines = text.slice(0, end).split("\n");
        text = text.slice(end + 2);
        const find = (name: string) =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        const event = find("event");
        if (event) seen.push({ id: find("id"), event, data: JSON.parse(find("data") ?? "") });
      }
    }
  };
  read().catch(() => {}).finally(() => stream.isEnded = true);
  return stream;
}

test("a caller with scope backend:read sees a delivery change until it is delivered", async (t) => {
  const consumer = await stage.newConsumer();
  const subscription = await stage.subscribe(consumer, "stream.one", 503, 204);
  const reader = await stage.newConsumer(["backend:read"]);
  const stream = await watch(t, "?topics=delivery", { token: reader });
  await until(async () => {
    await stage.dispatch("stream.one", {});
    return stream.seen.some(({ data }) => data["status"] === "delivered");
  });
  const shown = stream.seen.filter(({ event }) => event === "delivery");
  assert.deepEqual([...new Set(shown.map(({ data }) => data["subscription"]))], [subscription.id]);
  assert.deepEqual([...new Set(shown.map(({ data }) => data["name"]))], ["stream.one"]);
});

test("a stream of one subscription leaves out the deliveries of others", async (t) => {
  const consumer = await stage.newConsumer();
  const wanted = await stage.subscribe(consumer, "stream.two");
  await stage.subscribe(consumer, "stream.other");
  const stream = await watch(t, `?topics=delivery&subscription=${wanted.id}`);
  const all = await watch(t, "?topics=delivery");
  await stage.dispatch("stream.other", {});
  await stage.dispatch("stream.two", {});
  await until(() => all.seen.length >= 2 && stream.seen.length >= 1);
  assert.deepEqual([...new Set(stream.seen.map(({ data }) => data["subscription"]))], [wanted.id]);
});

test("a stream of one request has its deliveries first, then their changes", async (t) => {
  const consumer = await stage.newConsumer();
  const request = newName("call");
  const subscription = await stage.subscribe(consumer, "stream.call", 503);
  await stage.dispatch("stream.call", {}); // by another request
  await stage.deliveries(subscription, "failed");
  await stage.gatepost.api.postJson("/backend/event", { name: "stream.call", data: 1 },
    { ...bearer(stage.admin), "x-request-id": request });
  await stage.deliveries(subscription, "failed", "failed");
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // a stream reads back 2 s
  const stream = await watch(t, `?topics=delivery&request=${request}`, { at: other });
  await until(() => stream.seen.length === 1);
  const { id, status } = stream.seen[0]?.data ?? {};
  assert.equal(status, "failed");
  await stage.call("POST", `/backend/delivery/${String(id)}/resend`, stage.admin);
  await until(() => stream.seen.length > 1);
  assert.deepEqual([...new Set(stream.seen.map(({ data }) => data["id"]))], [id]);
});

test("a stream of one request finds its deliveries among many of that time", async (t) => {
  const consumer = await stage.newConsumer();
  const subscription = await stage.subscribe(consumer, "stream.many");
  const request = newName("request");
  const dispatch = (headers: Readonly<Record<string, string>>) =>
    stage.gatepost.api.postJson("/backend/event", { name: "stream.many", data: {} },
      { ...bearer(stage.admin), ...headers });
  const first = await dispatch({ "x-request-id": request });
  await Promise.all(Array.from({ length: 120 }, () => dispatch({})));
  const last = await dispatch({ "x-request-id": request }); // a client may use one for several
  await stage.deliveries(subscription, ...Array<string>(50).fill("delivered"));
  const stream = await watch(t, `?topics=delivery&request=${request}`, { at: other });
  await until(() => stream.seen.length > 0);
  const ids = [first, last].map((response) => readObject(response)["id"]);
  assert.deepEqual(stream.seen.map(({ data }) => data["event"]), ids);
});

test("a stream shows a change that comes right after it has begun", async (t) => {
  const consumer = await stage.newConsumer();
  const subscription = await stage.subscribe(consumer, "stream.soon", 503, 503, 204);
  await stage.dispatch("stream.soon", {});
  const [{ id } = {}] = await stage.deliveries(subscription, "failed");
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // a stream reads back 2 s
  const stream = await watch(t, `?topics=delivery&subscription=${subscription.id}`);
  await stage.call("POST", `/backend/delivery/${String(id)}/resend`, stage.admin);
  await until(() => stream.seen.some(({ data }) => data["status"] === "delivered"));
});

test("another process's stream shows changes, and what a client missed just once", async (t) => {
  const stream = await watch(t, "?topics=audit,delivery", { at: other });
  const consumer = await stage.newConsumer();
  await stage.subscribe(consumer, "stream.far");
  await stage.dispatch("stream.far", {});
  const isShown = (seen: readonly Seen[], event: string, holds: (data: Seen["data"]) => boolean) =>
    seen.some((each) => each.event === event && holds(each.data));
  await until(() =>
    isShown(stream.seen, "delivery", ({ name }) => name === "stream.far") &&
    isShown(stream.seen, "audit", ({ action }) => action === "event.dispatch")
  );
  stream.leave();
  const lastId = stream.seen.findLast(({ id }) => id !== undefined)?.id ?? "";
  assert.match(lastId, /^\d+$/);
  const users = await Promise.all([1, 2, 3, 4].map(() => stage.gatepost.createUser()));
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // a stream reads back 2 s
  const again = await watch(t, "?topics=audit", { at: other, lastId });
  await until(() => again.seen.length >= users.length);
  const targets = again.seen.map(({ data }) => data["target"]);
  for (const { id } of users) assert.equal(targets.filter((each) => each === id).length, 1, id);
});

test("a client that reconnects learns when it missed more than the stream can send", async (t) => {
  const consumer = await stage.newConsumer();
  const subscription = await stage.subscribe(consumer, "stream.missed");
  const lastId = String(Date.now());
  await Promise.all(Array.from({ length: 102 }, () => stage.dispatch("stream.missed", {})));
  await stage.deliveries(subscription, ...Array<string>(50).fill("delivered"));
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // a stream reads back 2 s
  const queries = ["?topics=audit", `?topics=delivery&subscription=${subscription.id}`];
  for (const query of queries) {
    const { seen } = await watch(t, query, { at: other, lastId });
    await until(() => seen.at(-1)?.event === "dropped");
    assert.equal(seen.length, 1 + 100, query);
  }
  const dayAgo = String(Date.now() - 86_400_000);
  const { seen } = await watch(t, "?topics=problem", { at: other, lastId: dayAgo });
  await until(() => seen.length > 0);
  assert.equal(seen[0]?.event, "dropped", "a stream does not look for what is older than an hour");
});

test("of many changes at once a stream shows some, and counts those it dropped", async (t) => {
  const stream = await watch(t, "?topics=audit");
  await Promise.all(Array.from({ length: 10 }, () => stage.dispatch("stream.many", {})));
  const shown = () => stream.seen.filter(({ event }) => event === "audit").length;
  const dropped = () => stream.seen.filter(({ event }) => event === "dropped")
    .reduce((sum, { data }) => sum + Number(data["count"]), 0);
  await until(() => shown() + dropped() >= 10);
  assert.ok(shown() >= 2 && shown() <= 6 && dropped() >= 4, `${shown()} ${dropped()}`);
});

test("a stream of problems begins at once with one list of all problems", async (t) => {
  const stream = await watch(t, "?topics=problem");
  await until(() => stream.seen.length > 0);
  assert.ok(Array.isArray(stream.seen[0]?.data["items"]));
  assert.deepEqual(stream.seen.map(({ event }) => event), ["problem"]);
});

test("a stream ends within two seconds after its user is disabled", async (t) => {
  const user = await stage.gatepost.createUser({ scopes: ["backend:read"] });
  const stream = await watch(t, "", { token: await stage.gatepost.login(user) });
  assert.equal(stream.isEnded, false);
  await stage.gatepost.change(user, { status: "disabled" });
  const disabledMs = performance.now();
  await until(() => stream.isEnded);
  assert.ok(performance.now() - disabledMs < 2_000, "one second is promised");
});

test("a 65th stream is refused, and accepted once another client has left", async (t) => {
  const streams = await Promise.all(Array.from({ length: 64 }, () => watch(t, "?topics=problem")));
  const tryOne = () => stage.gatepost.api.send("HEAD", "/backend/stream", {
    headers: bearer(stage.admin),
  });
  const refused = await stage.gatepost.api.get("/backend/stream", bearer(stage.admin));
  assertProblem(refused, 503);
  assert.equal(refused.headers.get("retry-after"), "10");
  streams[0]?.leave();
  await until(async () => (await tryOne()).status === 200);
  for (const stream of streams) stream.leave();
});

for (const query of ["?topics=delivery,", "?topics=events", "?subscription=x"]) {
  test(`GET /backend/stream${query} is refused`, async () => {
    const response = await stage.gatepost.api.get(`/backend/stream${query}`, bearer(stage.admin));
    assert.equal(assertProblem(response, 400).length, 1);
  });
}

test("a server that stops ends its streams at once", async (t) => {
  const own = await startGatepost();
  const stream = await watch(t, "", { at: own, token: own.adminToken });
  const startedMs = performance.now();
  await own.stop();
  assert.ok(performance.now() - startedMs < 5_000);
  await until(() => stream.isEnded);
});
