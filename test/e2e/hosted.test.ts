import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assertConsentPage, passLogin } from "../helpers/authorize_pages.ts";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { asFields } from "../helpers/openapi_rules.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem, readObject } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));

let stage: EventStage;
/** A token of a user with the scopes consumer and echo. */
let token: string;
before(async () => {
  stage = await startEventStage({ GATEPOST_ENDPOINTS: ENDPOINTS, GATEPOST_MAX_PAYLOAD: "1KiB" });
  token = await stage.newConsumer(["consumer", "echo"]);
});
after(() => stage.stop());

function send(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string | Uint8Array,
): Promise<ClientResponse> {
  return stage.gatepost.api.send(method, path, { headers, ...(body !== undefined && { body }) });
}

function echo(type: string, body: string | Uint8Array): Promise<ClientResponse> {
  return send("POST", "/echo/1/2", { ...bearer(token), "content-type": type }, body);
}

test("the consent page shows the description that a module gives to its scope", async () => {
  const { gatepost } = stage;
  const user = await gatepost.createUser({ scopes: ["echo"] });
  const app = await gatepost.createApp({ scopes: ["echo"] });
  const browser = gatepost.openBrowser();
  const page = await passLogin(browser, await gatepost.authorize(browser, app), user);
  assertConsentPage(page);
  assert.match(page.text, /Warning: Hear what you have said/);
});

describe("what a handler gets", () => {
  test("parameters percent-decoded, the query, the caller and a web Request", async () => {
    const path = "/echo/a%20b/%C3%A4%3F?x=1&x=2&y=%2B";
    const response = await send("POST", path, bearer(token));
    assert.equal(response.status, 200, response.text);
    const { caller, ...rest } = readObject(response);
    assert.deepEqual(rest, {
      params: { first: "a b", second: "ä?" },
      query: [["x", "1"], ["x", "2"], ["y", "+"]],
      body: null,
      url: `${stage.gatepost.issuer}${path}`,
      text: "",
    });
    const whoami = readObject(await send("GET", "/authorization/whoami", bearer(token)));
    const { sub, kind, clientId, scopes, ...more } = Object(caller);
    assert.deepEqual([sub, kind, clientId], [whoami["sub"], "user", "login"]);
    assert.deepEqual([...scopes].sort(), ["consumer", "echo"]);
    assert.deepEqual(more, {});
  });

  const BODIES: readonly (readonly [type: string, body: string, parsed: unknown])[] = [
    ["application/json", '{"a":[1,null]}', { a: [1, null] }],
    ["application/json; charset=utf-8", '"ä"', "ä"],
    ["application/merge-patch+json", "[]", []],
    ["application/x-www-form-urlencoded", "a=1&b=x+y%21", [["a", "1"], ["b", "x y!"]]],
    ["text/plain", "as it is", null],
  ];
  for (const [type, body, parsed] of BODIES) {
    test(`a body of ${type}`, async () => {
      const response = await echo(type, body);
      assert.equal(response.status, 200, response.text);
      const given = readObject(response);
      assert.deepEqual([given["body"], given["text"]], [parsed, body]);
    });
  }

  const REFUSED: readonly (readonly [type: string, body: string | Uint8Array, status: number])[] = [
    ["application/json", "{", 400],
    ["application/json", '{"__proto__":{}}', 400],
    ["application/json", `${"[".repeat(65)}${"]".repeat(65)}`, 400],
    ["application/json", new Uint8Array([0x22, 0xff, 0x22]), 400],
    ["application/json", JSON.stringify("x".repeat(1024)), 413],
    ["text/plain", "x".repeat(1025), 413],
    ["application/x-www-form-urlencoded", "a=%FF%zz", 400],
  ];
  for (const [type, body, status] of REFUSED) {
    test(`not ${JSON.stringify(String(body)).slice(0, 30)} of ${type}: ${status}`, async () => {
      assertProblem(await echo(type, body), status);
    });
  }
});

describe("which handler is called", () => {
  const CALLED: readonly (readonly [path: string, by: string])[] = [
    ["/echo/literal", "literal"],
    ["/echo/other", "parameter"],
    ["/echo/a/b/c", "wildcard"],
    ["/any/other/path", "impostor"],
    ["/consumers", "impostor"],
    ["/backendx", "impostor"],
  ];
  for (const [path, by] of CALLED) {
    test(`${path} calls the ${by}`, async () => {
      const response = await send("GET", path, bearer(token));
      assert.equal(readObject(response)["by"], by);
    });
  }

  test("if two share an OpenAPI path, the document has the one that is called", async () => {
    const { paths } = readObject(await send("GET", "/openapi.json", bearer(token)));
    const { get } = asFields(asFields(paths)["/echo/{any}"]);
    assert.equal(asFields(get)["operationId"], "get_echo_by_any");
  });

  const OWN = [
    "/system/health", "/consumer/subscription", "/authorization/whoami", "/backend/user",
    "/.well-known/jwks.json", "/openapi.json", "/system/about",
  ];
  for (const path of OWN) {
    test(`${path} calls the service's own`, async () => {
      const { text } = await send("GET", path);
      assert.ok(!text.startsWith('{"by":"impostor"'), text);
    });
  }

  test("another method on a known path gets 405 with the allowed methods", async () => {
    const response = await send("DELETE", "/dispatch");
    assertProblem(response, 405);
    const allowed = (response.headers.get("allow") ?? "").split(/, */);
    assert.ok(allowed.includes("POST"));
    assert.ok(!allowed.includes("DELETE"));
  });

  test("HEAD gets the same response as GET, without the body", async () => {
    const get = await send("GET", "/echo/literal");
    const head = await send("HEAD", "/echo/literal");
    assert.deepEqual([head.status, head.text], [200, ""]);
    assert.equal(head.headers.get("content-type"), get.headers.get("content-type"));
  });
});

describe("who may call", () => {
  const CALLS: readonly (readonly [path: string, scopes: string | undefined, status: number])[] = [
    ["/echo/other", undefined, 401],
    ["/echo/other", "consumer", 200],
    ["/echo/literal", undefined, 200],
    ["/needs-two", undefined, 401],
    ["/needs-two", "consumer", 403],
    ["/needs-two", "echo", 403],
    ["/needs-two", "audit", 403],
    ["/needs-two", "audit echo", 200],
  ];
  for (const [path, scopes, status] of CALLS) {
    test(`${path} with ${scopes ?? "no token"}: ${status}`, async () => {
      const headers = scopes === undefined
        ? {}
        : bearer(await stage.newConsumer(scopes.split(" ")));
      const response = await send("GET", path, headers);
      assert.equal(response.status, status, response.text);
      const challenge = response.headers.get("www-authenticate") ?? "";
      if (status === 403) assert.match(challenge, /error="insufficient_scope".*scope="echo audit"/);
      if (status === 401) {
        assert.match(challenge, /^Bearer /);
        assert.equal(challenge.includes('scope="echo audit"'), path === "/needs-two", challenge);
      }
    });
  }

  test("a public endpoint ignores an invalid token", async () => {
    const response = await send("GET", "/echo/literal", bearer("nonsense"));
    assert.deepEqual(readObject(response), { by: "literal", isAnonymous: true });
  });
});

describe("the response of a handler", () => {
  const JSON_TYPE = "application/json";
  const RESULTS: readonly (readonly [
    name: string,
    status: number,
    type: string | null,
    body: string,
  ])[] = [
    ["object", 200, JSON_TYPE, '{"a":1}'],
    ["array", 200, JSON_TYPE, "[1,2]"],
    ["text", 200, JSON_TYPE, '"text"'],
    ["null", 200, JSON_TYPE, "null"],
    ["number", 200, JSON_TYPE, "0"],
    ["nothing", 204, null, ""],
    ["status_word", 200, JSON_TYPE, '{"status":"active"}'],
    ["status_and_more", 200, JSON_TYPE, '{"status":404,"reason":"data"}'],
    ["answer", 201, JSON_TYPE, '{"a":1}'],
    ["empty_answer", 204, null, ""],
    ["plain_text", 200, "text/csv", "a;b"],
    ["bytes", 200, "application/octet-stream", "\0�"],
    ["response", 418, "text/plain;charset=UTF-8", "own"],
    ["error_500", 503, JSON_TYPE, '{"a":1}'],
  ];
  for (const [name, status, type, body] of RESULTS) {
    test(`that returns ${name} is ${status}`, async () => {
      const response = await send("GET", `/result/${name}`);
      assert.deepEqual([response.status, response.text], [status, body]);
      assert.equal(response.headers.get("content-type"), type);
      assert.ok(response.headers.get("x-request-id"));
      assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    });
  }

  test("that returns headers has them", async () => {
    assert.equal((await send("GET", "/result/answer")).headers.get("x-own"), "1");
    assert.equal((await send("GET", "/result/response")).headers.get("x-own"), "2");
    assert.equal((await send("GET", "/result/redirect")).headers.get("location"), "/elsewhere");
  });

  test("that refuses with headers and errors has them", async () => {
    const response = await send("GET", "/result/refuse_503");
    assert.equal(response.headers.get("retry-after"), "7");
    assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.deepEqual(readObject(response)["errors"], [{ pointer: "/item", detail: "Unknown." }]);
  });

  const REFUSALS: readonly (readonly [name: string, status: number, detail?: string])[] = [
    ["throw_refusal", 409, "Taken."],
    ["throw_bare", 404],
    ["throw_error", 500],
    ["refuse_503", 503, "Later."],
    ["throw_600", 500],
    ["throw_text", 500],
    ["reject", 500],
    ["cannot_encode", 500],
  ];
  for (const [name, status, detail] of REFUSALS) {
    test(`with the refusal ${name} is a problem ${status} without secrets`, async () => {
      const response = await send("GET", `/result/${name}`, { "x-request-id": `r-${name}` });
      assertProblem(response, status);
      const problem = readObject(response);
      if (detail !== undefined) assert.equal(problem["detail"], detail);
      assert.equal(problem["request_id"], `r-${name}`);
      assert.ok(!response.text.includes("secret"), response.text);
      if (status !== 500) return;
      const isLogged = () =>
        stage.gatepost.server.lines.some((line) =>
          line.includes(`"r-${name}"`) && line.includes('"level":"error"')
        );
      await until(isLogged);
    });
  }
});

describe("an event that a handler dispatches", () => {
  function dispatch(plan: Readonly<Record<string, unknown>>): Promise<ClientResponse> {
    return send("POST", "/dispatch", { "content-type": "application/json" }, JSON.stringify(plan));
  }

  /** Waits for so many requests to a path, and returns their data. */
  async function receivedBy(path: string, count: number): Promise<unknown[]> {
    const requests = await stage.receiver.waitFor(count, PATIENCE_MS, path);
    return requests.map(({ body }) => JSON.parse(String(body)));
  }

  /** The data that a path received before a last event, which this dispatches and waits for. */
  async function receivedInAll(path: string, event: string, count: number): Promise<unknown[]> {
    assert.equal((await dispatch({ events: [{ name: event, data: "last" }] })).status, 202);
    await until(() =>
      stage.receiver.requests(path).some(({ body }) => String(body) === '"last"')
    );
    return (await receivedBy(path, count + 1)).filter((data) => data !== "last");
  }

  test("is sent to every subscription, in a request of its own", async () => {
    const event = newName("e");
    const subscriptions = [
      await stage.subscribe(token, event),
      await stage.subscribe(token, event),
    ];
    const events = [1, 2, 3].map((n) => ({ name: event, data: { n } }));
    const response = await dispatch({ events });
    assert.equal(response.status, 202);
    const { ids } = readObject(response);
    assert.ok(Array.isArray(ids) && new Set(ids).size === 3);
    for (const { path } of subscriptions) {
      const data = await receivedBy(path, 3);
      assert.deepEqual(data.map((item) => Object(item).n).sort(), [1, 2, 3]);
    }
  });

  test("is not sent to subscriptions of other events", async () => {
    const [mine, other] = [newName("e"), newName("e")];
    const subscription = await stage.subscribe(token, mine);
    await dispatch({ events: [{ name: other, data: 1 }, { name: mine.toUpperCase(), data: 2 }] });
    assert.deepEqual(await receivedInAll(subscription.path, mine, 0), []);
  });

  test("with a subject is sent only to that principal's subscriptions", async () => {
    const event = newName("e");
    const user = await stage.gatepost.createUser();
    const theirs = await stage.subscribe(await stage.gatepost.login(user), event);
    const others = await stage.subscribe(token, event);
    const response = await dispatch({
      events: [{ name: event, data: "private", subject: user.id }],
    });
    assert.equal(response.status, 202);
    assert.deepEqual(await receivedInAll(theirs.path, event, 1), ["private"]);
    assert.deepEqual(await receivedInAll(others.path, event, 1), []);
  });

  for (const subject of ["", "nobody", "*", 7, null, {}]) {
    test(`with subject ${JSON.stringify(subject)} is refused with 500`, async () => {
      const event = newName("e");
      const subscription = await stage.subscribe(token, event);
      const response = await dispatch({ events: [{ name: event, data: 1, subject }] });
      assertProblem(response, 500);
      assert.deepEqual(await receivedInAll(subscription.path, event, 0), []);
    });
  }

  const NOT_DISPATCHED: readonly (readonly [what: string, plan: object, status: number])[] = [
    ["throws", { then: "throw" }, 500],
    ["throws a refusal", { then: "refuse" }, 422],
    ["returns 500", { status: 500 }, 500],
    ["returns 503", { status: 503 }, 503],
    ["returns 599", { status: 599 }, 599],
  ];
  for (const [what, plan, status] of NOT_DISPATCHED) {
    test(`is not sent if the handler ${what}`, async () => {
      const event = newName("e");
      const subscription = await stage.subscribe(token, event);
      const response = await dispatch({ events: [{ name: event, data: 1 }], ...plan });
      assert.equal(response.status, status);
      assert.deepEqual(await receivedInAll(subscription.path, event, 0), []);
    });
  }

  for (const status of [200, 204, 303, 400, 404, 499]) {
    test(`is sent if the handler returns ${status}`, async () => {
      const event = newName("e");
      const subscription = await stage.subscribe(token, event);
      assert.equal((await dispatch({ events: [{ name: event, data: 1 }], status })).status, status);
      assert.deepEqual(await receivedBy(subscription.path, 1), [1]);
    });
  }

  test("is sent if the handler returns a stream", async () => {
    const event = newName("e");
    const subscription = await stage.subscribe(token, event);
    const response = await dispatch({ events: [{ name: event, data: 1 }], then: "stream" });
    assert.equal(response.text, "ab");
    assert.deepEqual(await receivedBy(subscription.path, 1), [1]);
  });

  const FAULTY: readonly (readonly [what: string, second: object])[] = [
    ["an invalid name", { name: "no spaces", data: 2 }],
    ["a reserved name", { name: "gatepost.delivery.failed", data: 2 }],
    ["more than GATEPOST_MAX_PAYLOAD", { name: "e", data: "x".repeat(1023) }],
    ["no data", { name: "e" }],
  ];
  for (const [what, second] of FAULTY) {
    test(`is not sent if another event of the request has ${what}`, async () => {
      const event = newName("e");
      const subscription = await stage.subscribe(token, event);
      const response = await dispatch({ events: [{ name: event, data: 1 }, second] });
      assertProblem(response, 500);
      assert.deepEqual(await receivedInAll(subscription.path, event, 0), []);
    });
  }

  test("may be as large as GATEPOST_MAX_PAYLOAD, and no larger", async () => {
    const event = newName("e");
    const subscription = await stage.subscribe(token, event);
    const data = "ä".repeat(511); // 1,022 bytes and two quotes
    assert.equal((await dispatch({ events: [{ name: event, data }] })).status, 202);
    assert.deepEqual(await receivedBy(subscription.path, 1), [data]);
    const larger = await dispatch({ events: [{ name: event, data: `${data}x` }] });
    assert.equal(larger.status, 500);
  });
});
