import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { StagedSubscription } from "../helpers/event_stage.ts";
import type { TestApp } from "../helpers/gatepost.ts";
import { newName } from "../helpers/requests.ts";
import { assertProblem, readItems, readObject, readTokens } from "../helpers/responses.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { PATIENCE_MS } from "../helpers/until.ts";
import { goodBody, PATH, startSubscriptionStage } from "./subscription_stage.ts";

const { stage, consumer, subscribe, subscribed } = await startSubscriptionStage();
after(() => stage.stop());

/** The token that the token endpoint gives the app for these fields. */
async function appToken(app: TestApp, fields: Readonly<Record<string, string>>): Promise<string> {
  return readTokens(await stage.gatepost.token(app, fields)).access_token;
}

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
