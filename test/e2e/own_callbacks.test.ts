import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";

const AGAIN = `
  export const again = {
    method: "POST",
    path: "/again/:event",
    public: true,
    handle({ params, body, dispatch }) {
      dispatch(params.event, body);
    },
  };
`;

let stage: EventStage;
before(async () => {
  stage = await startEventStage({}, { "again.ts": AGAIN });
});
after(() => stage.stop());

async function subscribeTo(event: string, endpoint: string): Promise<string> {
  const token = await stage.newConsumer();
  const body = { event, endpoint };
  const response = await stage.call("POST", "/consumer/subscription", token, body);
  assert.equal(response.status, 201, response.text);
  return token;
}

function post(event: string, headers: Readonly<Record<string, string>> = {}) {
  return stage.gatepost.api.send("POST", `/again/${event}`, {
    headers: { "content-type": "application/json", ...headers },
    body: "1",
  });
}

test("an endpoint that is subscribed to the event that it dispatches makes no loop", async () => {
  const event = newName("loop");
  const other = stage.gatepost.url.replace("127.0.0.1", "localhost");
  const token = await subscribeTo(event, `${other}/again/${event}`);
  await subscribeTo(event, `${other}/again/${event}`);
  assert.equal((await post(event)).status, 204);
  const listed = readObject(await stage.call("GET", "/consumer/subscription", token));
  const { id } = Object(Object(listed["items"])[0]);
  const [delivery] = await stage.deliveries({ id, token, event, path: "" }, "failed");
  const path = `/consumer/subscription/${id}/delivery/${String(delivery?.["id"])}`;
  const { attempts } = readObject(await stage.call("GET", path, token));
  assert.ok(Array.isArray(attempts));
  assert.deepEqual(attempts.map(({ status }) => status), [403, 403]);
  await sleep(300); // three intervals
  const events = await stage.call("GET", `/backend/event?name=${event}`, stage.admin);
  assert.equal(Object(readObject(events)["items"]).length, 1);
});

test("a callback of another Gatepost is accepted", async () => {
  const agent = { "user-agent": "Gatepost/0.1.0@abcdef0" };
  const foreign = { ...agent, "webhook-id": "d0123456789abcdef" };
  assert.equal((await post(newName("event"), foreign)).status, 204);
});

test("an own delivery id is refused only with the User-Agent of Gatepost", async () => {
  const event = newName("event");
  const token = await stage.newConsumer();
  const subscription = await stage.subscribe(token, event);
  await stage.dispatch(event, 1);
  const [delivery] = await stage.deliveries(subscription, "delivered");
  const id = { "webhook-id": String(delivery?.["id"]) };
  assert.equal((await post(newName("event"), { ...id, "user-agent": "relay" })).status, 204);
  const refused = await post(newName("event"), { ...id, "user-agent": "Gatepost/9.9.9@abcdef0" });
  assertProblem(refused, 403);
  assert.equal(readObject(refused)["type"], "urn:gatepost:problem:own_callback");
});
