import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const LATER = "2130-01-31T12:00:00.000Z";

let stage: EventStage;
let consumer: string;
before(async () => {
  stage = await startEventStage({ GATEPOST_DISTRIBUTE_INTERVAL: "10s" }); // a pause's end wakes it
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

const FORMS = [["consumer", () => consumer], ["backend", () => stage.admin]] as const;
for (const [form, token] of FORMS) {
  const patch = (id: string, body: unknown) =>
    stage.call("PATCH", `/${form}/subscription/${id}`, token(), body);

  test(`${form}: a subscription paused until a time becomes active at that time`, async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    const until = new Date(Date.now() + 1_000).toISOString();
    const response = await patch(subscription.id, { paused_until: until });
    const { status, paused_until: shown } = readObject(response);
    assert.deepEqual([response.status, status, shown], [200, "paused", until]);
    await stage.dispatch(subscription.event, 1);
    await stage.deliveries(subscription, "pending");
    const [sent] = await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
    assert.ok(Number(sent?.atMs) >= Date.parse(until) - 5, "not before");
    const own = await stage.call("GET", `/consumer/subscription/${subscription.id}`, consumer);
    assert.equal(readObject(own)["status"], "active");
    assert.equal(readObject(own)["paused_until"], undefined);
  });

  test(`${form}: a subscription set to paused or active loses its paused_until`, async () => {
    const { id } = await stage.subscribe(consumer, newName("e"));
    await patch(id, { paused_until: LATER });
    assert.equal(readObject(await patch(id, { status: "paused" }))["paused_until"], undefined);
    const again = await patch(id, { status: "paused", paused_until: LATER });
    assert.equal(readObject(again)["paused_until"], LATER);
    const endpoint = `${stage.receiver.url}/${newName("hook")}`;
    assert.equal(readObject(await patch(id, { endpoint }))["paused_until"], LATER);
    const active = readObject(await patch(id, { status: "active" }));
    assert.deepEqual([active["status"], active["paused_until"]], ["active", undefined]);
  });

  test(`${form}: next_attempt_at is the end of the pause, and absent without one`, async () => {
    const subscription = await stage.subscribe(consumer, newName("e"));
    await patch(subscription.id, { status: "paused" });
    await stage.dispatch(subscription.event, 1);
    const next = async () =>
      (await stage.deliveries(subscription, "pending"))[0]?.["next_attempt_at"];
    assert.equal(await next(), undefined);
    await patch(subscription.id, { paused_until: LATER });
    assert.equal(await next(), LATER);
  });

  test(`${form}: paused_until must be a time, and needs a paused subscription`, async () => {
    const { id } = await stage.subscribe(consumer, newName("e"));
    for (const wrong of [{ status: "active", paused_until: LATER }, { paused_until: "soon" },
      { paused_until: null }]) {
      assert.deepEqual(assertProblem(await patch(id, wrong), 400), ["/paused_until"]);
    }
  });
}
