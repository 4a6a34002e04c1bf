import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  assertProblem,
  type EventStage,
  readItems,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { bearer, newName, readObject, readTokens, type TestApp } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { PATIENCE_MS } from "../helpers/until.ts";

const PATH = "/consumer/subscription";
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

let stage: EventStage;
let consumer: string;
before(async () => {
  stage = await startEventStage({}, { "orders.mjs": MODULE });
  consumer = await stage.newConsumer();
});
after(() => stage.stop());

/** A valid body, different each time. */
function goodBody(more: Readonly<Record<string, unknown>> = {}) {
  return { event: newName("e"), endpoint: "https://shop.example/hook", ...more };
}

function subscribe(body: unknown, token = consumer): Promise<ClientResponse> {
  return stage.call("POST", PATH, token, body);
}

async function subscribed(token = consumer): Promise<Readonly<Record<string, unknown>>> {
  const response = await subscribe(goodBody(), token);
  assert.equal(response.status, 201, response.text);
  return readObject(response);
}

/** The token that the token endpoint gives the app for these fields. */
async function appToken(app: TestApp, fields: Readonly<Record<string, string>>): Promise<string> {
  return readTokens(await stage.gatepost.token(app, fields)).access_token;
}

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

  const EVENTS: readonly (readonly [event: unknown, isGood: boolean])[] = [
    ["a", true],
    ["Order-1_a.b:c", true],
    ["x".repeat(128), true],
    ["gatepost", true],
    ["gateposts.are.fine", true],
    ["not.declared.by.any.module", true],
    ["", false],
    ["x".repeat(129), false],
    ["a b", false],
    ["a/b", false],
    ["é", false],
    ["a\n", false],
    ["*", false],
    [1, false],
    [null, false],
    [["a"], false],
  ];
  for (const [event, isGood] of EVENTS) {
    const text = JSON.stringify(event).slice(0, 40);
    test(`${isGood ? "accepts" : "refuses"} event ${text}`, async () => {
      const response = await subscribe({ event, endpoint: `https://${newName("shop")}.example/` });
      if (isGood) assert.equal(response.status, 201, response.text);
      else assert.deepEqual(assertProblem(response, 400), ["/event"]);
    });
  }

  const ENDPOINTS: readonly (readonly [endpoint: unknown, isGood: boolean])[] = [
    ["http://shop.example/hook", true],
    ["https://shop.example:8443/hook?x=1", true],
    ["https://93.184.216.34/", true],
    ["https://[2606:4700::1111]/", true],
    ["http://127.0.0.1:9/allowed-by-configuration", true],
    [`https://shop.example/${"x".repeat(2027)}`, true],
    [`https://shop.example/${"x".repeat(2028)}`, false],
    ["/hook", false],
    ["shop.example", false],
    ["ftp://shop.example/", false],
    ["file:///etc/passwd", false],
    ["http:///hook", false],
    ["http://user@shop.example/", false],
    ["http://@shop.example/", false],
    ["https://:@shop.example/hook", false],
    ["https://shop.example/@user//a@b?c=@", true],
    ["http://user:password@shop.example/", false],
    ["https://shop.example/#fragment", false],
    ["https://shop.example/#", false],
    [" https://shop.example/", false],
    ["https://shop.example/a b", false],
    ["https:\\\\shop.example\\", false],
    [7, false],
    [null, false],
    // Addresses that callbacks may not reach, however they are written.
    ["http://10.0.0.1/", false],
    ["http://10.1/", false],
    ["http://0x0a000001/", false],
    ["http://167772161/", false],
    ["http://012.0.0.1/", false],
    ["http://192.168.1.1/", false],
    ["http://172.16.0.1/", false],
    ["http://169.254.169.254/latest/meta-data", false],
    ["http://100.64.0.1/", false],
    ["http://0.0.0.0/", false],
    ["http://224.0.0.1/", false],
    ["http://255.255.255.255/", false],
    ["http://[::1]/", false],
    ["http://[::]/", false],
    ["http://[fe80::1]/", false],
    ["http://[fc00::1]/", false],
    ["http://[ff02::1]/", false],
    ["http://[::ffff:10.0.0.1]/", false],
    ["http://[64:ff9b::a00:1]/", false],
    ["http://[2002:a00:1::]/", false],
    ["https://10.0.0.1/", false],
    ["https://10.0.0.1./", false],
  ];
  for (const [endpoint, isGood] of ENDPOINTS) {
    test(`${isGood ? "accepts" : "refuses"} ${JSON.stringify(endpoint).slice(0, 60)}`, async () => {
      const response = await subscribe({ event: newName("e"), endpoint });
      if (isGood) assert.equal(response.status, 201, response.text);
      else assert.deepEqual(assertProblem(response, 400), ["/endpoint"]);
    });
  }

  test("refuses this service's own origin", async () => {
    for (const path of ["", "/", "/consumer/login", "/anything?x=1"]) {
      const endpoint = stage.gatepost.url + path;
      assert.deepEqual(assertProblem(await subscribe(goodBody({ endpoint })), 400), ["/endpoint"]);
    }
  });

  const BODIES: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{}, ["/endpoint", "/event"]],
    [{ event: "e" }, ["/endpoint"]],
    [{ endpoint: "https://shop.example/" }, ["/event"]],
    [{ event: "", endpoint: "", more: 1 }, ["/endpoint", "/event", "/more"]],
    [{ event: "bad event", endpoint: "http://10.0.0.1/" }, ["/endpoint", "/event"]],
    [{ event: 1, endpoint: 2, id: 3, "a/b~": 4 }, ["/a~1b~0", "/endpoint", "/event", "/id"]],
    [goodBody({ secret: "whsec_mine" }), ["/secret"]],
    [goodBody({ status: "paused" }), ["/status"]],
    [goodBody({ principal: "u1", app: "a1" }), ["/app", "/principal"]],
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

describe("access", () => {
  const CALLS: readonly (readonly [method: string, path: string])[] = [
    ["POST", PATH],
    ["GET", PATH],
    ["GET", `${PATH}/s1`],
    ["PATCH", `${PATH}/s1`],
    ["DELETE", `${PATH}/s1`],
    ["POST", `${PATH}/s1/secret`],
  ];
  for (const [method, path] of CALLS) {
    test(`${method} ${path} needs a token with scope consumer`, async () => {
      const without = await stage.gatepost.api.send(method, path);
      assert.equal(without.status, 401);
      const other = await stage.newConsumer(["orders"]);
      const refused = await stage.call(method, path, other);
      assert.equal(refused.status, 403);
      assert.match(refused.headers.get("www-authenticate") ?? "", /error="insufficient_scope"/);
    });
  }

  test("to another principal's subscription is 404, and changes nothing", async () => {
    const { id } = await subscribed();
    const path = `${PATH}/${String(id)}`;
    const other = await stage.newConsumer(["consumer", "backend"]);
    assertProblem(await stage.call("GET", path, other), 404);
    assertProblem(await stage.call("PATCH", path, other, { status: "paused" }), 404);
    assertProblem(await stage.call("POST", `${path}/secret`, other), 404);
    assertProblem(await stage.call("DELETE", path, other), 404);
    assert.deepEqual(readItems(await stage.call("GET", PATH, other)), []);
    const record = readObject(await stage.call("GET", path, consumer));
    assert.equal(record["status"], "active");
  });

  test("with an app's token is to what that app made, with a login token to all", async () => {
    const user = await stage.gatepost.createUser();
    const grants = ["password", "refresh_token"];
    const [first, second] = [
      await stage.gatepost.createApp({ grants }),
      await stage.gatepost.createApp({ grants }),
    ];
    const fields = {
      grant_type: "password",
      username: user.username,
      password: user.password,
      scope: "consumer",
    };
    const tokens = {
      login: await stage.gatepost.login(user),
      first: await appToken(first, fields),
      second: await appToken(second, fields),
    };
    const made = {
      login: String((await subscribed(tokens.login))["id"]),
      first: String((await subscribed(tokens.first))["id"]),
      second: String((await subscribed(tokens.second))["id"]),
    };
    const seenBy = async (token: string) =>
      readItems(await stage.call("GET", PATH, token)).map(({ id }) => String(id)).sort();
    assert.deepEqual(await seenBy(tokens.login), Object.values(made).sort());
    assert.deepEqual(await seenBy(tokens.first), [made.first]);
    assert.deepEqual(await seenBy(tokens.second), [made.second]);
    for (const id of [made.login, made.second]) {
      assertProblem(await stage.call("GET", `${PATH}/${id}`, tokens.first), 404);
      assertProblem(await stage.call("DELETE", `${PATH}/${id}`, tokens.first), 404);
    }
  });

  test("of an app acting for itself is to its own subscriptions", async () => {
    const app = await stage.gatepost.createApp();
    const token = await appToken(app, { grant_type: "client_credentials", scope: "consumer" });
    const { id } = await subscribed(token);
    const items = readItems(await stage.call("GET", PATH, token));
    assert.deepEqual(items.map((item) => item["id"]), [id]);
    assertProblem(await stage.call("GET", `${PATH}/${String(id)}`, consumer), 404);
  });
});

describe("GET /consumer/subscription", () => {
  test("lists the newest first, page by page", async () => {
    const token = await stage.newConsumer();
    const made: unknown[] = [];
    for (let count = 0; count < 5; count++) made.unshift((await subscribed(token))["id"]);
    const pages: unknown[][] = [];
    for (let cursor: unknown = ""; cursor !== null;) {
      const query = cursor === "" ? "?limit=2" : `?limit=2&cursor=${String(cursor)}`;
      const response = await stage.call("GET", PATH + query, token);
      pages.push(readItems(response).map(({ id }) => id));
      cursor = readObject(response)["next_cursor"];
    }
    assert.deepEqual(pages, [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
  });

  for (const query of ["limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=x"]) {
    test(`refuses ?${query}`, async () => {
      assertProblem(await stage.call("GET", `${PATH}?${query}`, consumer), 400);
    });
  }

  test("lists the same record that GET /consumer/subscription/{id} returns", async () => {
    const token = await stage.newConsumer();
    const { id, secret, ...record } = await subscribed(token);
    assert.equal(typeof secret, "string");
    const one = readObject(await stage.call("GET", `${PATH}/${String(id)}`, token));
    assert.deepEqual(one, { id, ...record });
    assert.deepEqual(readItems(await stage.call("GET", PATH, token)), [one]);
  });

  test("returns 404 for an unknown id", async () => {
    for (const id of ["s0", "x", "%00", "s%27--", "s".repeat(500)]) {
      assertProblem(await stage.call("GET", `${PATH}/${id}`, consumer), 404);
    }
  });
});

describe("PATCH /consumer/subscription/{id}", () => {
  test("changes status and endpoint, alone and together", async () => {
    const { id } = await subscribed();
    const path = `${PATH}/${String(id)}`;
    const changes = [
      { status: "paused" },
      { endpoint: "https://b.example/new" },
      { endpoint: "https://c.example/", status: "active" },
    ];
    for (const change of changes) {
      const response = await stage.call("PATCH", path, consumer, change);
      assert.equal(response.status, 200, response.text);
      const record = readObject(response);
      assert.deepEqual({ ...record, ...change }, record);
      assert.equal(record["secret"], undefined);
      assert.deepEqual(readObject(await stage.call("GET", path, consumer)), record);
    }
  });

  const WRONG_CHANGES: readonly (readonly [body: unknown, pointers: readonly string[]])[] = [
    [{ status: "disabled" }, ["/status"]],
    [{ status: "deleted" }, ["/status"]],
    [{ status: null }, ["/status"]],
    [{ event: "other" }, ["/event"]],
    [{ secret: "whsec_x" }, ["/secret"]],
    [{ endpoint: "http://10.0.0.1/" }, ["/endpoint"]],
    [{ endpoint: "http://10.0.0.1/", status: "bogus" }, ["/endpoint", "/status"]],
    [{ endpoint: "x", status: "y", z: 1 }, ["/endpoint", "/status", "/z"]],
  ];
  for (const [body, pointers] of WRONG_CHANGES) {
    test(`names all errors of ${JSON.stringify(body)}, and changes nothing`, async () => {
      const { id, secret, ...record } = await subscribed();
      const path = `${PATH}/${String(id)}`;
      const response = await stage.call("PATCH", path, consumer, body);
      assert.deepEqual(assertProblem(response, 400), pointers);
      const now = readObject(await stage.call("GET", path, consumer));
      assert.deepEqual({ ...now, secret }, { id, ...record, secret });
    });
  }

  test("refuses this service's own origin, and an endpoint that the event has", async () => {
    const body = goodBody();
    await subscribe(body);
    const { id } = readObject(await subscribe({ ...body, endpoint: "https://b.example/" }));
    const path = `${PATH}/${String(id)}`;
    const own = { endpoint: `${stage.gatepost.url}/x` };
    const refused = await stage.call("PATCH", path, consumer, own);
    assert.deepEqual(assertProblem(refused, 400), ["/endpoint"]);
    const taken = { endpoint: body.endpoint };
    assertProblem(await stage.call("PATCH", path, consumer, taken), 409);
  });
});

describe("DELETE /consumer/subscription/{id}", () => {
  test("returns 204 without a body, and 404 from then on", async () => {
    const { id } = await subscribed();
    const path = `${PATH}/${String(id)}`;
    const response = await stage.call("DELETE", path, consumer);
    assert.deepEqual([response.status, response.text], [204, ""]);
    assertProblem(await stage.call("GET", path, consumer), 404);
    assertProblem(await stage.call("DELETE", path, consumer), 404);
    assertProblem(await stage.call("PATCH", path, consumer, { status: "active" }), 404);
    assertProblem(await stage.call("POST", `${path}/secret`, consumer), 404);
  });
});

describe("POST /consumer/subscription/{id}/secret", () => {
  /** Dispatches to the subscription and returns the request that its endpoint gets. */
  async function deliver(subscription: StagedSubscription) {
    const before = stage.receiver.count(subscription.path);
    await stage.dispatch(subscription.event, { n: before });
    const requests = await stage.receiver.waitFor(before + 1, PATIENCE_MS, subscription.path);
    return requests.at(-1) ?? assert.fail();
  }

  test("returns a new secret, and callbacks are signed with the earlier ones too", async () => {
    const path = `/${newName("hook")}`;
    const body = { event: newName("e"), endpoint: stage.receiver.url + path };
    const { id, secret: first } = readObject(await subscribe(body));
    const subscription = { id: String(id), path, event: body.event, token: consumer };
    const before = await deliver(subscription);
    assert.equal(findSignatureFault(before, String(first), Date.now()), undefined);

    const response = await stage.call("POST", `${PATH}/${String(id)}/secret`, consumer);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("cache-control"), "no-store");
    const { secret: second } = readObject(response);
    assert.notEqual(second, first);
    assert.match(String(second), /^whsec_/);

    const after = await deliver(subscription);
    assert.equal(findSignatureFault(after, String(first), Date.now()), undefined);
    assert.equal(findSignatureFault(after, String(second), Date.now()), undefined);
    assert.notEqual(findSignatureFault(before, String(second), Date.now()), undefined);

    // A third: each of them signs for a day.
    const again = await stage.call("POST", `${PATH}/${String(id)}/secret`, consumer);
    const { secret: third } = readObject(again);
    const last = await deliver(subscription);
    assert.equal(new Set([first, second, third]).size, 3);
    for (const secret of [first, second, third]) {
      assert.equal(findSignatureFault(last, String(secret), Date.now()), undefined);
    }
  });
});
