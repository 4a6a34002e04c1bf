import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  assertOAuthError,
  basicAuth,
  bearer,
  decodeJwt,
  type Gatepost,
  newAddress,
  newName,
  newPkce,
  PASSWORD,
  readObject,
  readTokens,
  startGatepost,
  type TestApp,
  type TestUser,
  type TokenAnswer,
} from "../helpers/gatepost.ts";
import type { Answer } from "../helpers/http_client.ts";

const ALL_GRANTS = ["authorization_code", "refresh_token", "client_credentials", "password"];
const FORM = "application/x-www-form-urlencoded";

let gatepost: Gatepost;
let user: TestUser;
/** May use every grant, and scopes that the user has not. */
let app: TestApp;
/** Has the default grants. */
let plainApp: TestApp;
let publicApp: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes: ["consumer", "orders", "private"] });
  app = await gatepost.createApp({
    scopes: ["consumer", "orders", "extra", "backend"],
    grants: ALL_GRANTS,
    trusted: true,
  });
  plainApp = await gatepost.createApp();
  publicApp = await gatepost.createApp({ type: "public" });
});
after(() => gatepost.stop());

/** A request to the token endpoint with a body as it is written here, by Basic. */
function post(body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const sent = { "content-type": FORM, ...basicAuth(app), ...headers };
  return gatepost.api.send("POST", "/authorization/token", { headers: sent, body });
}

const passwordFields = () => ({
  grant_type: "password",
  username: user.username,
  password: user.password,
});

describe("the token endpoint answers (RFC 6749 §5.1, RFC 9068 §2)", () => {
  const grants: [type: string, get: () => Promise<Answer>, subject: () => string][] = [
    ["client_credentials", () => gatepost.token(app, { grant_type: "client_credentials" }),
      () => app.id],
    ["password", () => gatepost.token(app, passwordFields()), () => user.id],
    ["authorization_code", async () => {
      const code = await gatepost.code(app, user);
      return gatepost.token(app, { grant_type: "authorization_code", code });
    }, () => user.id],
    ["refresh_token", async () => {
      const first = readTokens(await gatepost.token(app, passwordFields()));
      const fields = { grant_type: "refresh_token", refresh_token: first.refresh_token };
      return gatepost.token(app, fields);
    }, () => user.id],
  ];

  for (const [type, get, subject] of grants) {
    describe(`to ${type}`, () => {
      let answer: Answer;
      let tokens: TokenAnswer;
      before(async () => {
        answer = await get();
        tokens = readTokens(answer);
      });

      test("with exactly these members", () => {
        const names = ["access_token", "expires_in", "refresh_token", "scope", "token_type"];
        assert.deepEqual(Object.keys(readObject(answer)).sort(), names);
      });

      test("with token_type bearer, seconds, and scopes between spaces", () => {
        assert.equal(tokens.token_type, "bearer");
        assert.equal(tokens.expires_in, 3600);
        const expected = type === "client_credentials"
          ? ["consumer", "extra", "orders"]
          : ["consumer", "orders"];
        assert.deepEqual(tokens.scope.split(" ").sort(), expected);
      });

      test("as JSON that no cache keeps", () => {
        assert.match(answer.headers.get("content-type") ?? "", /^application\/json\b/);
        assert.equal(answer.headers.get("cache-control"), "no-store");
        assert.equal(answer.headers.get("pragma"), "no-cache");
      });

      test("with an access token of this header and these claims", async () => {
        const { header, claims } = decodeJwt(tokens.access_token);
        assert.deepEqual(Object.keys(header).sort(), ["alg", "kid", "typ"]);
        assert.deepEqual([header["alg"], header["typ"]], ["ES256", "at+jwt"]);
        const { jti, iat, exp, ...rest } = claims;
        assert.deepEqual(rest, {
          iss: gatepost.issuer,
          aud: gatepost.issuer,
          sub: subject(),
          client_id: app.id,
          scope: tokens.scope,
        });
        assert.equal(Number(exp) - Number(iat), 3600);
        assert.ok(Math.abs(Number(iat) - Date.now() / 1000) < 60);
        assert.match(String(jti), /^\S{16,}$/);
      });

      test("with an access token that opens a protected endpoint", async () => {
        assert.equal(await gatepost.isAlive(tokens.access_token), true);
      });
    });
  }

  test("with another jti each time", async () => {
    const get = async () =>
      readTokens(await gatepost.token(app, { grant_type: "client_credentials" })).access_token;
    const ids = [await get(), await get()].map((token) => decodeJwt(token).claims["jti"]);
    assert.notEqual(ids[0], ids[1]);
  });

  test("without a refresh token where the app may not use that grant", async () => {
    const once = await gatepost.createApp({ grants: ["client_credentials"] });
    const answer = await gatepost.token(once, { grant_type: "client_credentials" });
    readTokens(answer);
    assert.equal("refresh_token" in readObject(answer), false);
  });

  test("with ids that tell users from apps", () => {
    assert.match(user.id, /^u[A-Za-z0-9]+$/);
    assert.match(app.id, /^a[A-Za-z0-9]+$/);
  });
});

describe("scopes of client_credentials (RFC 6749 §3.3)", () => {
  const table: [requested: string | undefined, granted: string | undefined][] = [
    [undefined, "consumer orders extra"],
    ["", "consumer orders extra"],
    ["orders", "orders"],
    ["consumer orders", "consumer orders"],
    ["consumer,orders", "consumer orders"],
    ["consumer, orders", "consumer orders"],
    ["consumer ,, orders ", "consumer orders"],
    ["orders orders", "orders"],
    ["backend", "backend"],
    ["backend,consumer", "backend consumer"],
    ["other", undefined],
    ["orders other", undefined],
    ["ORDERS", undefined],
    ["private", undefined],
    ['or"ders', undefined],
    ["or\\ders", undefined],
    ["orders\n", undefined],
    ["orders\0", undefined],
    ["ördérs", undefined],
    ["x".repeat(65), undefined],
  ];
  for (const [requested, granted] of table) {
    test(`${JSON.stringify(requested)} gives ${granted ?? "invalid_scope"}`, async () => {
      const answer = await gatepost.token(app, {
        grant_type: "client_credentials",
        ...(requested !== undefined && { scope: requested }),
      });
      if (granted === undefined) return assertOAuthError(answer, 400, "invalid_scope");
      const sorted = readTokens(answer).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
  }

  test("nothing but backend, and that not named, is invalid_scope", async () => {
    const admin = await gatepost.createApp({ scopes: ["backend"] });
    const fields = { grant_type: "client_credentials" };
    assertOAuthError(await gatepost.token(admin, fields), 400, "invalid_scope");
    readTokens(await gatepost.token(admin, { ...fields, scope: "backend" }));
  });
});

describe("scopes of a user's grant are the app's that the user has (RFC 6749 §3.3)", () => {
  const table: [requested: string | undefined, granted: string | undefined][] = [
    [undefined, "consumer orders"],
    ["orders", "orders"],
    ["orders extra", "orders"],
    ["orders backend", "orders"],
    ["extra", undefined],
    ["backend", undefined],
    ["private", undefined],
    ["consumer private", undefined],
  ];
  for (const [requested, granted] of table) {
    const name = `${JSON.stringify(requested)} gives ${granted ?? "invalid_scope"}`;
    const scope = requested === undefined ? {} : { scope: requested };
    test(`password: ${name}`, async () => {
      const answer = await gatepost.token(app, { ...passwordFields(), ...scope });
      if (granted === undefined) return assertOAuthError(answer, 400, "invalid_scope");
      const sorted = readTokens(answer).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
    test(`authorization_code: ${name}`, async () => {
      const callback = await gatepost.allow(gatepost.openBrowser(), app, user, scope);
      const code = callback.searchParams.get("code");
      if (granted === undefined || code === null) {
        assert.equal(callback.searchParams.get("error"), "invalid_scope");
        assert.equal(granted, undefined);
        return;
      }
      const answer = await gatepost.token(app, { grant_type: "authorization_code", code });
      const sorted = readTokens(answer).scope.split(" ").sort();
      assert.deepEqual(sorted, granted.split(" ").sort());
    });
  }

  test("backend goes to who has it when it is named, and only then", async () => {
    const fields = { grant_type: "password", username: "admin", password: PASSWORD };
    assert.equal(readTokens(await gatepost.token(app, fields)).scope, "consumer");
    const named = await gatepost.token(app, { ...fields, scope: "backend" });
    assert.equal(readTokens(named).scope, "backend");
  });
});

describe("the token endpoint answers 400 invalid_request (RFC 6749 §3.2, §5.2) to", () => {
  const cc = "grant_type=client_credentials";
  const bodies: [what: string, body: string][] = [
    ["an empty body", ""],
    ["no grant_type", "scope=consumer"],
    ["an empty grant_type", "grant_type="],
    ["grant_type twice", `${cc}&${cc}`],
    ["grant_type twice, once empty", `${cc}&grant_type=`],
    ["scope twice", `${cc}&scope=consumer&scope=orders`],
    ["scope twice, once with its name escaped", `${cc}&scope=consumer&%73cope=orders`],
    ["an unknown parameter twice", `${cc}&x=1&x=2`],
    ["a code that is missing", "grant_type=authorization_code"],
    ["a code that is empty", "grant_type=authorization_code&code="],
    ["a refresh token that is missing", "grant_type=refresh_token"],
    ["a refresh token that is empty", "grant_type=refresh_token&refresh_token="],
    ["a username that is missing", "grant_type=password&password=x"],
    ["a password that is missing", "grant_type=password&username=x"],
    ["a password that is empty", "grant_type=password&username=x&password="],
    ["half an escape", `${cc}&scope=%4`],
    ["an escape of no digits", `${cc}&scope=%zz`],
    ["an escape that is not UTF-8", `${cc}&scope=%ff`],
    ["JSON under a form's name", '{"grant_type": "client_credentials"}'],
  ];
  for (const [what, body] of bodies) {
    test(what, async () => assertOAuthError(await post(body), 400, "invalid_request"));
  }

  const types = [
    "application/json",
    "text/plain",
    "multipart/form-data; boundary=x",
    `${FORM}; charset=utf-16`,
    `${FORM}x`,
    "form",
  ];
  for (const type of types) {
    test(`content type ${type}`, async () => {
      assertOAuthError(await post(cc, { "content-type": type }), 400, "invalid_request");
    });
  }

  test("no content type", async () => {
    const body = new TextEncoder().encode(cc);
    const headers = basicAuth(app);
    const answer = await gatepost.api.send("POST", "/authorization/token", { headers, body });
    assertOAuthError(answer, 400, "invalid_request");
  });

  test("a compressed body (RFC 9110 §8.4)", async () => {
    assertOAuthError(await post(cc, { "content-encoding": "gzip" }), 400, "invalid_request");
  });

  const queries = [
    "client_id=a",
    "client_secret=b",
    "x=1&client_secret=b",
    "%63lient_secret=b",
    "client_secret=b&%zz",
    "code=c",
    "code_verifier=v",
    "refresh_token=r",
    "password=p",
    "token=t",
  ];
  for (const query of queries) {
    test(`credentials in the query (§2.3.1): ${query}`, async () => {
      const headers = { "content-type": FORM, ...basicAuth(app) };
      const path = `/authorization/token?${query}`;
      const answer = await gatepost.api.send("POST", path, { headers, body: cc });
      assertOAuthError(answer, 400, "invalid_request");
    });
  }
});

describe("the token endpoint takes", () => {
  const cc = "grant_type=client_credentials";
  const bodies: [what: string, body: string][] = [
    ["an unknown parameter", `${cc}&unknown=1`],
    ["an empty scope as none", `${cc}&scope=`],
    ["a parameter without =", `${cc}&scope`],
    ["escapes and empty pairs", `&&grant%5ftype=client%5Fcredentials&&scope=consumer%20orders&`],
    ["a comma that is escaped", `${cc}&scope=consumer%2Corders`],
  ];
  for (const [what, body] of bodies) {
    test(what, async () => void readTokens(await post(body)));
  }

  for (const type of [`${FORM}; charset=UTF-8`, `${FORM};charset="utf-8"`, FORM.toUpperCase()]) {
    test(`content type ${type}`, async () => {
      readTokens(await post(cc, { "content-type": type }));
    });
  }

  test("a query that says nothing to it", async () => {
    const headers = { "content-type": FORM, ...basicAuth(app) };
    const path = "/authorization/token?version=1";
    readTokens(await gatepost.api.send("POST", path, { headers, body: cc }));
  });
});

describe("the token endpoint refuses", () => {
  for (const type of ["implicit", "token", "Client_Credentials", "client_credentials ",
    "urn:ietf:params:oauth:grant-type:device_code", "__proto__", "constructor"]) {
    test(`grant_type ${JSON.stringify(type)} as unsupported_grant_type`, async () => {
      const answer = await gatepost.token(app, { grant_type: type });
      assertOAuthError(answer, 400, "unsupported_grant_type");
    });
  }

  test("a form of more than 64 KiB with 413", async () => {
    const answer = await post(`grant_type=client_credentials&x=${"x".repeat(65_536)}`);
    assertOAuthError(answer, 413, "invalid_request");
  });

  test("a form of 300 parameters, and answers the next request", async () => {
    const many = Array.from({ length: 300 }, (_, index) => `p${index}=1`).join("&");
    assertOAuthError(await post(`grant_type=client_credentials&${many}`), 400, "invalid_request");
    readTokens(await post("grant_type=client_credentials"));
  });

  for (const method of ["GET", "PUT", "DELETE"]) {
    test(`${method} with 405 and Allow`, async () => {
      const answer = await gatepost.api.send(method, "/authorization/token");
      assert.equal(answer.status, 405);
      assert.match(answer.headers.get("allow") ?? "", /\bPOST\b/);
    });
  }

  const resources: [resource: (issuer: string) => string, isOurs: boolean][] = [
    [(issuer) => issuer, true],
    [() => "https://other.example", false],
    [(issuer) => `${issuer}/authorization`, false],
    [(issuer) => issuer.toUpperCase(), false],
    [() => "no URI", false],
  ];
  for (const [index, [resource, isOurs]] of resources.entries()) {
    test(`a resource that is not this service (RFC 8707 §2), ${index + 1}`, async () => {
      const fields = { grant_type: "client_credentials", resource: resource(gatepost.issuer) };
      const answer = await gatepost.token(app, fields);
      if (isOurs) readTokens(answer);
      else assertOAuthError(answer, 400, "invalid_target");
    });
  }

  test("two resources of which one is not this service", async () => {
    const own = encodeURIComponent(gatepost.issuer);
    const body = `grant_type=client_credentials&resource=${own}&resource=https%3A%2F%2Fa.example`;
    assertOAuthError(await post(body), 400, "invalid_target");
    readTokens(await post(`grant_type=client_credentials&resource=${own}&resource=${own}`));
  });

  test("never with a word of the request in its description", async () => {
    const word = "zzyzx";
    const bodies = [
      `grant_type=${word}`,
      `grant_type=client_credentials&scope=${word}`,
      `grant_type=authorization_code&code=${word}`,
      `grant_type=refresh_token&refresh_token=${word}`,
      `grant_type=password&username=${word}&password=${word}`,
      `grant_type=client_credentials&resource=${word}`,
      `grant_type=client_credentials&${word}=1&${word}=2`,
    ];
    for (const body of bodies) {
      const answer = await post(body);
      assert.equal(answer.status, 400, answer.text);
      assert.ok(!answer.text.includes(word), answer.text);
    }
  });
});

describe("grants of an app (RFC 6749 §5.2 unauthorized_client)", () => {
  test("are code, refresh and client_credentials by default", async () => {
    const { refresh_token } = readTokens(
      await gatepost.token(plainApp, { grant_type: "client_credentials" }),
    );
    readTokens(await gatepost.token(plainApp, { grant_type: "refresh_token", refresh_token }));
    await gatepost.codeTokens(plainApp, user);
  });

  test("are code and refresh for a public app", async () => {
    const { refresh_token } = await gatepost.codeTokens(publicApp, user);
    readTokens(await gatepost.token(publicApp, { grant_type: "refresh_token", refresh_token }));
    const answer = await gatepost.token(publicApp, { grant_type: "client_credentials" });
    assertOAuthError(answer, 400, "unauthorized_client");
  });

  test("do not hold password until it is allowed, and the answer says how", async () => {
    const answer = await gatepost.token(plainApp, passwordFields());
    assertOAuthError(answer, 400, "unauthorized_client");
    assert.match(String(readObject(answer)["error_description"]), /password.*grants|grants.*password/);
  });

  test("may hold password for a public app too", async () => {
    const native = await gatepost.createApp({ type: "public", grants: ["password"] });
    readTokens(await gatepost.token(native, passwordFields()));
  });

  for (const type of ALL_GRANTS) {
    test(`${type} is refused where another is all that is allowed`, async () => {
      const other = type === "password" ? "client_credentials" : "password";
      const narrow = await gatepost.createApp({ grants: [other] });
      const fields = { ...passwordFields(), grant_type: type, code: "c", refresh_token: "r" };
      assertOAuthError(await gatepost.token(narrow, fields), 400, "unauthorized_client");
    });
  }
});

describe("password (RFC 6749 §4.3)", () => {
  test("answers one invalid_grant to a wrong password, a disabled and an unknown user", async () => {
    const disabled = await gatepost.createUser();
    await gatepost.change(disabled, { status: "disabled" });
    const fields = passwordFields();
    const bodies = new Set<string>();
    const cases = [
      { ...fields, password: "not the password" },
      { ...fields, username: disabled.username },
      { ...fields, username: newName("nobody") },
    ];
    for (const each of cases) {
      const answer = await gatepost.token(app, each);
      assertOAuthError(answer, 400, "invalid_grant");
      bodies.add(answer.text);
    }
    assert.equal(bodies.size, 1);
  });

  test("is throttled with the login, as temporarily_unavailable", async () => {
    const victim = await gatepost.createUser();
    const from = { "x-forwarded-for": newAddress() };
    const { username } = victim;
    const fields = { grant_type: "password", username, password: "not the password" };
    for (let count = 0; count < 5; count++) {
      await gatepost.api.postJson("/consumer/login", { username, password: "wrong" }, from);
      const headers = { ...from, ...basicAuth(app) };
      const answer = await gatepost.api.postForm("/authorization/token", fields, headers);
      assertOAuthError(answer, 400, "invalid_grant");
    }
    const headers = { ...from, ...basicAuth(app) };
    const right = { ...fields, password: victim.password };
    const answer = await gatepost.api.postForm("/authorization/token", right, headers);
    assertOAuthError(answer, 429, "temporarily_unavailable");
    assert.ok(Number(answer.headers.get("retry-after")) > 0);
    const login = await gatepost.api.postJson("/consumer/login", right, from);
    assert.equal(login.status, 429);
  });
});

test("an app's own token speaks for the app: whoami says kind app and no user name", async () => {
  const tokens = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const answer = await gatepost.api.get("/authorization/whoami", bearer(tokens.access_token));
  const { expires_at, ...rest } = readObject(answer);
  const { scope } = tokens;
  assert.deepEqual(rest, { sub: app.id, kind: "app", client_id: app.id, scope });
  assert.match(String(expires_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/);
});

test("a user's token speaks for the user: whoami says kind user and the user name", async () => {
  const pair = newPkce();
  const code = await gatepost.code(app, user, pair.challenge);
  const fields = { grant_type: "authorization_code", code, ...pair.verifier };
  const tokens = readTokens(await gatepost.token(app, fields));
  const answer = await gatepost.api.get("/authorization/whoami", bearer(tokens.access_token));
  const { expires_at: _, ...rest } = readObject(answer);
  const { username } = user;
  const { scope } = tokens;
  assert.deepEqual(rest, { sub: user.id, kind: "user", username, client_id: app.id, scope });
});
