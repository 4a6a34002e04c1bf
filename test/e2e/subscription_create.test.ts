import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";
import { goodBody, PATH, startSubscriptionStage } from "./subscription_stage.ts";

const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const MODULE = `
  export const orders = {
    method: "POST",
    path: "/orders",
    scope: "orders",
    emits: {
      "order.created": "Nobody needs a scope for this",
      "order.audited": { description: "Two are needed", scope: ["orders", "audit"] },
    },
    handle() {},
  };`;

const started = await startSubscriptionStage({ "orders.mjs": MODULE });
const { stage, consumer, subscribe, subscribed } = started;
after(() => stage.stop());

describe("POST /consumer/subscription", () => {
  test("returns 201 with the record, its Location and its secret", async () => {
    const body = goodBody();
    const response = await subscribe(body);
    assert.equal(response.status, 201);
    const record = readObject(response);
    assert.deepEqual(Object.keys(record).sort(), [
      "created_at", "endpoint", "event", "id", "secret", "status",
    ]);
    const { id, created_at: createdAt, secret, ...rest } = record;
    assert.deepEqual(rest, { ...body, status: "active" });
    assert.match(String(id), /^[A-Za-z0-9]+$/);
    assert.match(String(createdAt), RFC_3339_UTC);
    assert.ok(Math.abs(Date.parse(String(createdAt)) - Date.now()) < 10_000);
    assert.match(String(secret), /^whsec_[A-Za-z0-9+/]+=*$/);
    assert.ok(Buffer.from(String(secret).slice(6), "base64").length >= 24);
    assert.equal(new URL(response.location ?? "").pathname, `${PATH}/${String(id)}`);
    assert.equal(response.headers.get("cache-control"), "no-store");
  });

  test("shows the secret, which GET and the list do not", async () => {
    const { id, secret } = await subscribed();
    const one = await stage.call("GET", `${PATH}/${String(id)}`, consumer);
    const list = await stage.call("GET", PATH, consumer);
    for (const response of [one, list]) {
      assert.equal(response.status, 200);
      assert.ok(!response.text.includes("whsec_") && !response.text.includes(String(secret)));
    }
  });

  test("gives each subscription its own secret", async () => {
    const secrets = await Promise.all([subscribed(), subscribed(), subscribed()]);
    assert.equal(new Set(secrets.map(({ secret }) => secret)).size, 3);
  });

  const EVENTS: readonly (readonly [isGood: boolean, events: readonly unknown[]])[] = [
    [true, ["a", "Order-1_a.b:c", "x".repeat(128), "gatepost", "gateposts.are.fine",
      "not.declared.by.any.module"]],
    [false, ["", "x".repeat(129), "a b", "a/b", "é", "a\n", "*", 1, null, ["a"]]],
  ];
  for (const [isGood, events] of EVENTS) {
    for (const event of events) {
      const text = JSON.stringify(event).slice(0, 40);
      test(`${isGood ? "accepts" : "refuses"} event ${text}`, async () => {
        const endpoint = `https://${newName("shop")}.example/`;
        const response = await subscribe({ event, endpoint });
        if (isGood) assert.equal(response.status, 201, response.text);
        else assert.deepEqual(assertProblem(response, 400), ["/event"]);
      });
    }
  }

  const ENDPOINTS: readonly (readonly [isGood: boolean, endpoints: readonly unknown[]])[] = [
    [true, ["http://shop.example/hook", "https://shop.example:8443/hook?x=1",
      "https://93.184.216.34/", "https://[2606:4700::1111]/",
      "http://127.0.0.1:9/allowed-by-configuration", `https://shop.example/${"x".repeat(2027)}`,
      "https://shop.example/@user//a@b?c=@"]],
    [false, [`https://shop.example/${"x".repeat(2028)}`, "/hook", "shop.example",
      "ftp://shop.example/", "file:///etc/passwd", "http:///hook", "http://user@shop.example/",
      "http://@shop.example/", "https://:@shop.example/hook",
      "http://user:password@shop.example/", "https://shop.example/#fragment",
      "https://shop.example/#", " https://shop.example/", "https://shop.example/a b",
      "https:\\\\shop.example\\", 7, null]],
    // Addresses that callbacks may not reach, however they are written.
    [false, ["http://10.0.0.1/", "http://10.1/", "http://0x0a000001/", "http://167772161/",
      "http://012.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/",
      "http://169.254.169.254/latest/meta-data", "http://100.64.0.1/", "http://0.0.0.0/",
      "http://224.0.0.1/", "http://255.255.255.255/", "http://[::1]/", "http://[::]/",
      "http://[fe80::1]/", "http://[fc00::1]/", "http://[ff02::1]/",
      "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://[2002:a00:1::]/",
      "https://10.0.0.1/", "https://10.0.0.1./"]],
  ];
  for (const [isGood, endpoints] of ENDPOINTS) {
    for (const endpoint of endpoints) {
      const text = JSON.stringify(endpoint).slice(0, 60);
      test(`${isGood ? "accepts" : "refuses"} ${text}`, async () => {
        const response = await subscribe({ event: newName("e"), endpoint });
        if (isGood) assert.equal(response.status, 201, response.text);
        else assert.deepEqual(assertProblem(response, 400), ["/endpoint"]);
      });
    }
  }

  test("refuses this service's own origin", async () => {
    for (const path of ["", "/", "/consumer/login", "/anything?x=1"]) {
      const endpoint = stage.gatepost.url + path;
      assert.deepEqual(assertProblem(await subscribe(goodBody({ endpoint })), 400), ["/endpoint"]);
    }
  });

  const GOOD = { event: "e", endpoint: "https://shop.example/" };
  const BODIES: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{}, ["/endpoint", "/event"]],
    [{ event: "e" }, ["/endpoint"]],
    [{ endpoint: "https://shop.example/" }, ["/event"]],
    [{ event: "", endpoint: "", more: 1 }, ["/endpoint", "/event", "/more"]],
    [{ event: "bad event", endpoint: "http://10.0.0.1/" }, ["/endpoint", "/event"]],
    [{ event: 1, endpoint: 2, id: 3, "a/b~": 4 }, ["/a~1b~0", "/endpoint", "/event", "/id"]],
    [{ ...GOOD, secret: "whsec_mine" }, ["/secret"]],
    [{ ...GOOD, status: "paused" }, ["/status"]],
    [{ ...GOOD, principal: "u1", app: "a1" }, ["/app", "/principal"]],
  ];
  for (const [body, pointers] of BODIES) {
    test(`names all errors of ${JSON.stringify(body)}`, async () => {
      assert.deepEqual(assertProblem(await subscribe(body), 400), pointers);
    });
  }

  const TEXTS: readonly (readonly [body: string, type: string, status: number])[] = [
    ["", "application/json", 400],
    ["{", "application/json", 400],
    ["null", "application/json", 400],
    ["[]", "application/json", 400],
    ['"e"', "application/json", 400],
    ["{}{}", "application/json", 400],
    [`${'{"a":'.repeat(65)}1${"}".repeat(65)}`, "application/json", 400],
    ['{"event":"e","endpoint":"https://shop.example/","__proto__":{}}', "application/json", 400],
    ["event=e&endpoint=https://shop.example/", "application/x-www-form-urlencoded", 415],
    ["{}", "text/plain", 415],
  ];
  for (const [body, type, status] of TEXTS) {
    test(`returns ${status} for ${type} ${JSON.stringify(body).slice(0, 50)}`, async () => {
      const headers = { ...bearer(consumer), "content-type": type };
      assertProblem(await stage.gatepost.api.send("POST", PATH, { headers, body }), status);
    });
  }

  test("returns 413 for a body past GATEPOST_MAX_BODY", async () => {
    assertProblem(await subscribe(goodBody({ more: "x".repeat(1_048_576) })), 413);
  });

  test("returns 409 for the same event and endpoint of one principal", async () => {
    const body = goodBody();
    assert.equal((await subscribe(body)).status, 201);
    assertProblem(await subscribe(body), 409);
    assert.equal((await subscribe({ ...body, event: newName("e") })).status, 201);
    assert.equal((await subscribe({ ...body, endpoint: "https://b.example/" })).status, 201);
    assert.equal((await subscribe(body, await stage.newConsumer())).status, 201);
  });

  test("makes one subscription of eight equal requests at once", async () => {
    const body = goodBody();
    const responses = await Promise.all(Array.from({ length: 8 }, () => subscribe(body)));
    assert.deepEqual(responses.map(({ status }) => status).sort(), [201, ...Array(7).fill(409)]);
  });

  test("accepts the event and endpoint of a deleted subscription again", async () => {
    const body = goodBody();
    const { id } = readObject(await subscribe(body));
    assert.equal((await stage.call("DELETE", `${PATH}/${String(id)}`, consumer)).status, 204);
    assert.equal((await subscribe(body)).status, 201);
  });

  test("makes 100 for one principal and returns 409 for the next", async () => {
    const token = await stage.newConsumer();
    const responses = await Promise.all(
      Array.from({ length: 104 }, () => subscribe(goodBody(), token)),
    );
    const made = responses.filter(({ status }) => status === 201);
    const refused = responses.filter(({ status }) => status !== 201);
    assert.deepEqual([made.length, refused.length], [100, 4]);
    for (const response of refused) assertProblem(response, 409);
    assert.equal((await subscribe(goodBody())).status, 201, "another principal still may");
    const { id } = readObject(made[0] ?? assert.fail());
    await stage.call("DELETE", `${PATH}/${String(id)}`, token);
    assert.equal((await subscribe(goodBody(), token)).status, 201, "a deleted one is not counted");
  });

  const ALLOWED: readonly (readonly [
    event: string,
    scopes: readonly string[],
    status: number,
  ])[] = [
    ["order.created", ["consumer"], 201],
    ["order.audited", ["consumer"], 403],
    ["order.audited", ["consumer", "orders"], 403],
    ["order.audited", ["consumer", "audit", "orders"], 201],
    ["gatepost.delivery.failed", ["consumer"], 403],
    ["gatepost.anything", ["consumer", "orders"], 403],
    ["gatepost.delivery.failed", ["consumer", "backend"], 201],
  ];
  for (const [event, scopes, status] of ALLOWED) {
    test(`returns ${status} for ${event} with scopes ${scopes.join(" ")}`, async () => {
      const response = await subscribe(goodBody({ event }), await stage.newConsumer(scopes));
      if (status === 201) assert.equal(response.status, 201, response.text);
      else assertProblem(response, status);
    });
  }

  test("tells a client which scopes an event needs (RFC 6750 §3)", async () => {
    const token = await stage.newConsumer(["consumer"]);
    const response = await subscribe(goodBody({ event: "order.audited" }), token);
    const challenge = response.headers.get("www-authenticate") ?? "";
    const scope = /error="insufficient_scope", scope="([^"]*)"/.exec(challenge)?.[1]?.split(" ");
    assert.deepEqual(scope?.toSorted(), ["audit", "consumer", "orders"]);
    assert.match(challenge, /resource_metadata="[^"]*\/consumer\/subscription"$/);
  });
});
