import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Credentials, type Gatepost, PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import { newName } from "../helpers/requests.ts";
import { decodeJwt, readObject } from "../helpers/responses.ts";

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

const wrong = (user: Credentials): Credentials => ({ ...user, password: "not the password" });

describe("POST /consumer/login", () => {
  test("returns 200 with the token and nothing else, and with no-store", async () => {
    const response = await gatepost.tryLogin(await gatepost.createUser());
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type") ?? "", /^application\/json\b/);
    assert.equal(response.headers.get("cache-control"), "no-store");
    const body = readObject(response);
    assert.deepEqual(Object.keys(body), ["token"]);
    assert.match(String(body["token"]), /^[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  test("issues a token for protected endpoints", async () => {
    const token = await gatepost.login(await gatepost.createUser());
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("issues a token with every scope of the user, for the built-in app login", async () => {
    const user = await gatepost.createUser({ scopes: ["consumer", "backend", "orders"] });
    const { claims } = decodeJwt(await gatepost.login(user));
    assert.deepEqual(String(claims["scope"]).split(" ").sort(), ["backend", "consumer", "orders"]);
    assert.equal(claims["client_id"], "login");
    assert.equal(claims["sub"], user.id);
  });

  test("accepts the user name in any case", async () => {
    const user = await gatepost.createUser();
    const username = user.username.toUpperCase();
    assert.equal((await gatepost.tryLogin({ ...user, username })).status, 200);
  });

  test("refuses the password in another case", async () => {
    const user = await gatepost.createUser();
    const shouted = { ...user, password: PASSWORD.toUpperCase() };
    assert.equal((await gatepost.tryLogin(shouted)).status, 401);
  });

  test("ignores unknown members", async () => {
    const { username, password } = await gatepost.createUser();
    const body = { username, password, remember: true, "": [{}] };
    assert.equal((await gatepost.api.postJson("/consumer/login", body)).status, 200);
  });

  const types = ["application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json"];
  for (const type of types) {
    test(`accepts a body of type ${type}`, async () => {
      const { username, password } = await gatepost.createUser();
      const headers = { "content-type": type };
      const body = { username, password };
      const response = await gatepost.api.postJson("/consumer/login", body, headers);
      assert.equal(response.status, 200, response.text);
    });
  }
});

describe("POST /consumer/login refuses", () => {
  const refused: Credentials[] = [];
  before(async () => {
    const [known, disabled] = [await gatepost.createUser(), await gatepost.createUser()];
    await gatepost.change(disabled, { status: "disabled" });
    const nobody = { ...known, username: newName("nobody") };
    refused.push(wrong(known), disabled, wrong(disabled), nobody);
  });

  test("a wrong password, a disabled and an unknown user with the same 401 response", async () => {
    const seen = new Set<string>();
    for (const credentials of refused) {
      const response = await gatepost.tryLogin(credentials);
      assert.equal(response.status, 401);
      const { request_id: _, ...body } = readObject(response);
      const own = ["date", "x-request-id"];
      const headers = [...response.headers].filter(([name]) => !own.includes(name));
      seen.add(JSON.stringify([body, headers]));
    }
    assert.equal(seen.size, 1, [...seen].join("\n"));
  });

  test("a wrong password with a challenge (RFC 9110 §15.5.2)", async () => {
    const [credentials] = refused;
    assert.ok(credentials !== undefined);
    assert.equal(
      (await gatepost.tryLogin(credentials)).headers.get("www-authenticate"),
      'Bearer realm="gatepost", resource_metadata=' +
        `"${gatepost.issuer}/.well-known/oauth-protected-resource"`,
    );
  });

  test("a password of a million characters with 401, and a longer body with 413", async () => {
    const [credentials] = refused;
    const tryLength = async (length: number) => {
      const body = { ...credentials, password: "x".repeat(length) };
      return (await gatepost.api.postJson("/consumer/login", body)).status;
    };
    assert.deepEqual(await Promise.all([1_000_000, 1_048_576].map(tryLength)), [401, 413]);
  });

  test("each of them after about the same time, since it computes a hash", async () => {
    const tookMs = refused.map((): number[] => []);
    for (let round = 0; round < 7; round++) {
      for (const [index, credentials] of refused.entries()) {
        const startMs = performance.now();
        await gatepost.tryLogin(credentials);
        tookMs[index]?.push(performance.now() - startMs);
      }
    }
    const medians = tookMs.map((times) => times.sort((a, b) => a - b)[3] ?? 0);
    // Without a hash a response is ten times faster; a busy machine makes less difference.
    assert.ok(Math.min(...medians) > Math.max(...medians) / 3, medians.join(" ms, "));
  });

  test("a user name that no account can have", async () => {
    for (const username of ["", "a b", "x".repeat(65), "x".repeat(60_000), "a\0", "\ud800", "ü"]) {
      const { status } = await gatepost.tryLogin({ username, password: PASSWORD });
      assert.equal(status, 401, username.slice(0, 9));
    }
  });

  test("a password that no account can have", async () => {
    const { username } = await gatepost.createUser();
    for (const password of ["", "short", `${PASSWORD}\0`, "x".repeat(60_000)]) {
      const { status } = await gatepost.tryLogin({ username, password });
      assert.equal(status, 401, password.slice(0, 9));
    }
  });
});

describe("POST /consumer/login returns 400 with the fields for", () => {
  const good = { username: "admin", password: PASSWORD };
  const table: [what: string, body: unknown, pointers: string[]][] = [
    ["an empty object", {}, ["/password", "/username"]],
    ["no username", { password: PASSWORD }, ["/username"]],
    ["no password", { username: "admin" }, ["/password"]],
    ["a number for a username", { ...good, username: 1 }, ["/username"]],
    ["null for a username", { ...good, username: null }, ["/username"]],
    ["null for a password", { ...good, password: null }, ["/password"]],
    ["a list for a password", { ...good, password: [PASSWORD] }, ["/password"]],
    ["an object for a username", { ...good, username: { eq: "admin" } }, ["/username"]],
    ["true for both", { username: true, password: true }, ["/password", "/username"]],
    ["a list", [good], [""]],
    ["a string", "admin", [""]],
    ["null", null, [""]],
  ];
  for (const [what, body, pointers] of table) {
    test(what, async () => {
      const response = await gatepost.api.postJson("/consumer/login", body);
      assert.equal(response.status, 400, response.text);
      const { errors }: { errors: { pointer: string }[] } = JSON.parse(response.text);
      assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), pointers);
    });
  }
});

describe("POST /consumer/login returns 415 for", () => {
  const types = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/json; charset=utf-16",
  ];
  for (const type of types) {
    test(type, async () => {
      const headers = { "content-type": type };
      const response = await gatepost.api.postJson("/consumer/login", {}, headers);
      assert.equal(response.status, 415, response.text);
    });
  }
  test("a body without a type", async () => {
    const body = new TextEncoder().encode("{}");
    assert.equal((await gatepost.api.send("POST", "/consumer/login", { body })).status, 415);
  });
});

test("a login token names this service as its issuer and audience", () => {
  const { claims } = decodeJwt(gatepost.adminToken);
  assert.deepEqual([claims["iss"], claims["aud"]], [gatepost.issuer, gatepost.issuer]);
});
