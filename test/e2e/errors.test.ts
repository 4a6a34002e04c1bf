// On SQLite alone: it is about HTTP, not about the database.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Gatepost, PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { sendRaw } from "../helpers/raw_http.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

const MAX_BODY = 16_384;

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost({ env: { GATEPOST_MAX_BODY: "16KiB" } });
});
after(() => gatepost.stop());

interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly request_id: string;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** Checks the shape of problem details (RFC 9457 §3) and returns them. */
function readProblem({ status, headers, text }: ClientResponse): ProblemBody {
  assert.match(headers.get("content-type") ?? "", /^application\/problem\+json\b/, text);
  const body: ProblemBody = JSON.parse(text);
  assert.match(body.type, /^urn:gatepost:problem:[a-z_]+$/);
  assert.equal(body.status, status);
  assert.equal(body.request_id, headers.get("x-request-id"));
  assert.ok(body.title.length > 0 && body.detail.length > 0);
  const members = ["detail", "errors", "request_id", "status", "title", "type"];
  assert.deepEqual(Object.keys(body).filter((name) => !members.includes(name)), []);
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  return body;
}

const postUser = (body: unknown, headers = {}): Promise<ClientResponse> =>
  gatepost.api.postJson("/backend/user", body, { ...bearer(gatepost.adminToken), ...headers });

const postText = (path: string, body: string | Uint8Array): Promise<ClientResponse> =>
  gatepost.api.send("POST", path, {
    headers: { "content-type": "application/json", ...bearer(gatepost.adminToken) },
    body,
  });

describe("an error is problem details (RFC 9457)", () => {
  const cases: [what: string, send: () => Promise<ClientResponse>, status: number][] = [
    ["404 of an unknown path", () => gatepost.api.get("/nowhere"), 404],
    ["404 of a trailing slash", () => gatepost.api.get("/authorization/whoami/"), 404],
    ["404 of a path in another case", () => gatepost.api.get("/Authorization/whoami"), 404],
    ["404 of an unknown user", () =>
      gatepost.api.get("/backend/user/u1", bearer(gatepost.adminToken)), 404],
    ["405 of a wrong method", () => gatepost.api.send("PUT", "/consumer/login"), 405],
    ["401 without a token", () => gatepost.api.get("/backend/user"), 401],
    ["401 of a login", () =>
      gatepost.api.postJson("/consumer/login", { username: newName("no"), password: "x" }), 401],
    ["400 of an invalid body", () => postUser({}), 400],
    ["409 of an existing user", () =>
      postUser({ username: "ADMIN", password: PASSWORD }), 409],
    ["413 of a large body", () =>
      postUser({ username: "x".repeat(MAX_BODY), password: PASSWORD }), 413],
    ["415 of a wrong media type", () => postUser({}, { "content-type": "text/plain" }), 415],
  ];
  for (const [what, send, status] of cases) {
    test(what, async () => assert.equal(readProblem(await send()).status, status));
  }

  test("403 without the scope", async () => {
    const token = await gatepost.login(await gatepost.createUser());
    assert.equal(readProblem(await gatepost.api.get("/backend/user", bearer(token))).status, 403);
  });
});

describe("405 lists the methods of a path in Allow (RFC 9110 §15.5.6)", () => {
  const table: [method: string, path: string, methods: string[]][] = [
    ["GET", "/consumer/login", ["POST"]],
    ["DELETE", "/authorization/whoami", ["GET", "HEAD"]],
    ["POST", "/.well-known/jwks.json", ["GET", "HEAD"]],
    ["PUT", "/backend/user", ["GET", "HEAD", "POST"]],
    ["POST", "/backend/user/u1", ["DELETE", "GET", "HEAD", "PATCH"]],
  ];
  for (const [method, path, methods] of table) {
    test(`${method} ${path}`, async () => {
      const response = await gatepost.api.send(method, path);
      assert.equal(response.status, 405);
      const allow = (response.headers.get("allow") ?? "").split(/, */);
      assert.deepEqual(allow.filter((name) => name !== "OPTIONS").sort(), methods);
    });
  }

  test("and so does OPTIONS", async () => {
    const response = await gatepost.api.send("OPTIONS", "/backend/user");
    assert.equal(response.status, 204);
    assert.match(response.headers.get("allow") ?? "", /GET.*POST|POST.*GET/);
  });
});

describe("HEAD has the status and the Content-Type of GET, and no body (RFC 9110 §9.3.2)", () => {
  for (const path of ["/system/health", "/.well-known/jwks.json", "/nowhere"]) {
    test(path, async () => {
      const [get, head] = [await gatepost.api.get(path), await gatepost.api.send("HEAD", path)];
      assert.equal(head.status, get.status);
      assert.equal(head.text, "");
      assert.equal(head.headers.get("content-type"), get.headers.get("content-type"));
    });
  }
});

describe("X-Request-Id", () => {
  test("is on every response, with a new value each time", async () => {
    const ids = new Set<string>();
    const paths = ["/system/health", "/nowhere", "/consumer/login", "/authorization/authorize"];
    for (const path of paths) {
      const id = (await gatepost.api.get(path)).headers.get("x-request-id");
      assert.ok(id !== null && id.length >= 8, path);
      ids.add(id);
    }
    assert.equal(ids.size, paths.length);
  });

  for (const id of ["abc-123", "550e8400-e29b-41d4-a716-446655440000", "A.b:c_d-9"]) {
    test(`is kept if it is valid: ${id}`, async () => {
      const response = await gatepost.api.get("/nowhere", { "x-request-id": id });
      assert.equal(readProblem(response).request_id, id);
    });
  }

  for (const id of ["a b", "<script>", "é", '"', "x".repeat(1000), "a,b", "{}"]) {
    test(`is replaced if it is invalid: ${id.slice(0, 12)}`, async () => {
      const response = await gatepost.api.get("/nowhere", { "x-request-id": id });
      assert.match(readProblem(response).request_id, /^[A-Za-z0-9._:-]{8,128}$/);
      assert.notEqual(readProblem(response).request_id, id);
    });
  }
});

describe("a path that other software may read differently is 400", () => {
  const targets = [
    "/system/../system/health",
    "/./system/health",
    "/system/./health",
    "/system/health/..",
    "/..",
    "/.",
    "/%2e/system/health",
    "/system/%2E%2e/system/health",
    "/system/.%2e/health",
    "/system%2fhealth",
    "/system%2Fhealth",
    "/system%5chealth",
    "/backend/user/a%2fb",
    "/backend/user/..%2f..%2fapp",
    "/system\\health",
    "/system/health\x01",
    "/system/h\xe9alth",
    "http:///system/health", // RFC 9110 §4.2.1
    "http://user@localhost/system/health", // RFC 9110 §4.2.4
  ];
  for (const target of targets) {
    test(JSON.stringify(target), async () => {
      const head = `Authorization: Bearer ${gatepost.adminToken}\r\n`;
      const response = await sendRaw(gatepost.url, "GET", target, { head });
      assert.equal(response.status, 400, response.body);
    });
  }

  test("but not a path with dots within a name", async () => {
    for (const target of ["/...", "/a..b", "/.x", "/x."]) {
      assert.equal((await sendRaw(gatepost.url, "GET", target)).status, 404, target);
    }
  });

  test("but not a path with such characters in its query", async () => {
    const target = "/system/health?x=../%2f%5c..&y=%zz";
    assert.equal((await sendRaw(gatepost.url, "GET", target)).status, 200);
  });

  test("and so is an invalid percent-encoding of an id", async () => {
    const head = `Authorization: Bearer ${gatepost.adminToken}\r\n`;
    for (const target of ["/backend/user/%zz", "/backend/user/%ff"]) {
      assert.equal((await sendRaw(gatepost.url, "GET", target, { head })).status, 400, target);
    }
  });
});

describe("an invalid JSON body is 400", () => {
  const bodies: [what: string, body: string | Uint8Array][] = [
    ["an empty body", ""],
    ["spaces", "  "],
    ["a body that is cut off", '{"username": "x"'],
    ["a trailing comma", '{"username": "x",}'],
    ["single quotes", "{'username': 'x'}"],
    ["a comment", '{"username": "x"} // x'],
    ["two values", '{"username": "x"}{}'],
    ["NaN", '{"username": NaN}'],
    ["a raw line feed in a string", '{"username": "a\nb"}'],
    ["a form", "username=x&password=y"],
    ["a byte order mark", '\ufeff{"username": "x"}'],
    ["bytes that are not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ["UTF-16", new Uint8Array(Buffer.from('{"username": "x"}', "utf16le"))],
    ["a member __proto__", '{"username": "x", "password": "long enough", "__proto__": {}}'],
  ];
  for (const [what, body] of bodies) {
    test(what, async () => {
      const problem = readProblem(await postText("/backend/user", body));
      assert.equal(problem.status, 400);
    });
  }

  test("but is not repeated in the response", async () => {
    const response = await postText("/backend/user", '{"password": "zzyzx"');
    assert.ok(!response.text.includes("zzyzx"), response.text);
  });
});

describe("a JSON body may nest 64 levels deep", () => {
  // Login ignores members that it does not know, so depth alone decides between 401 and 400.
  const post = (depth: number) =>
    postText(
      "/consumer/login",
      `{"username": "nobody", "password": "x", "deep": ${"[".repeat(depth - 1)}${
        "]".repeat(depth - 1)
      }}`,
    );
  test("64 levels are read", async () => assert.equal((await post(64)).status, 401));
  test("65 levels are 400", async () => assert.equal((await post(65)).status, 400));
  test("8,000 levels are 400", async () => assert.equal((await post(8000)).status, 400));
});

describe("a response has a JSON Pointer to each error (RFC 6901)", () => {
  const table: [what: string, path: string, body: unknown, pointers: string[]][] = [
    ["of a user", "/backend/user", { username: "a b", password: "short", scopes: "x", more: 1 },
      ["/more", "/password", "/scopes", "/username"]],
    ["of an app", "/backend/app",
      { name: 1, url: "ftp://x", type: "other", trusted: "yes", "a/b~": 0 },
      ["/a~1b~0", "/name", "/trusted", "/type", "/url"]],
    ["of a list's items", "/backend/user",
      { username: newName("u"), password: PASSWORD, scopes: ["good", "b d", 3] },
      ["/scopes/1", "/scopes/2"]],
    ["of a subscription", "/consumer/subscription", { event: 1, endpoint: "x", secret: "s" },
      ["/endpoint", "/event", "/secret"]],
    ["of a list instead of an object", "/backend/user", [], [""]],
    ["of a string instead of an object", "/backend/app", "app", [""]],
  ];
  for (const [what, path, body, pointers] of table) {
    test(what, async () => {
      const response = await gatepost.api.postJson(path, body, bearer(gatepost.adminToken));
      const problem = readProblem(response);
      assert.equal(problem.status, 400);
      assert.deepEqual(problem.errors?.map(({ pointer }) => pointer).sort(), pointers);
      assert.ok(problem.errors?.every(({ detail }) => detail.length > 0));
    });
  }

  test("and nothing of the body is stored", async () => {
    const username = newName("half");
    await postUser({ username, password: PASSWORD, unknown: 1 });
    const login = await gatepost.api.postJson("/consumer/login", { username, password: PASSWORD });
    assert.equal(login.status, 401);
  });
});

describe("a body larger than GATEPOST_MAX_BODY is 413", () => {
  const padded = (length: number) => {
    const body = '{"username": "nobody", "password": "x"}';
    return body + " ".repeat(length - body.length);
  };

  test("one byte more, but not the limit itself", async () => {
    assert.equal((await postText("/consumer/login", padded(MAX_BODY))).status, 401);
    assert.equal((await postText("/consumer/login", padded(MAX_BODY + 1))).status, 413);
  });

  test("by its Content-Length alone", async () => {
    const head = "Content-Type: application/json\r\nContent-Length: 99999999999\r\n";
    assert.equal((await sendRaw(gatepost.url, "POST", "/consumer/login", { head })).status, 413);
  });

  test("in chunks, without a Content-Length", async () => {
    const head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    const chunk = `1000\r\n${" ".repeat(0x1000)}\r\n`;
    const body = chunk.repeat(5);
    const response = await sendRaw(gatepost.url, "POST", "/consumer/login", { head, body });
    assert.equal(response.status, 413);
  });

  test("and the server still responds", async () => {
    assert.equal((await gatepost.api.get("/system/health")).status, 200);
  });
});

test("the last of two members with one name counts, as with JSON.parse()", async () => {
  const { username } = await gatepost.createUser();
  const body = `{"username": "nobody", "username": "${username}", "password": "${PASSWORD}"}`;
  assert.equal((await postText("/consumer/login", body)).status, 200);
});

test("a member __proto__ is refused and grants no scope", async () => {
  const username = newName("proto");
  for (const name of ["__proto__", "\\u005f_proto__"]) {
    const scopes = `"${name}": {"scopes": ["backend"]}`;
    const body = `{"username": "${username}", "password": "${PASSWORD}", ${scopes}}`;
    assert.equal((await postText("/backend/user", body)).status, 400);
  }
  const { scopes } = readObject(await postUser({ username, password: PASSWORD }));
  assert.deepEqual(scopes, ["consumer"]);
});

test("no error shows a stack trace, SQL or a file name", async () => {
  const responses = [
    await gatepost.api.get("/backend/user?limit=x", bearer(gatepost.adminToken)),
    await gatepost.api.get("/backend/user?cursor='", bearer(gatepost.adminToken)),
    await gatepost.api.get("/backend/user/%00", bearer(gatepost.adminToken)),
    await postText("/backend/user", "["),
    await gatepost.api.get("/nowhere"),
  ];
  for (const { text, status } of responses) {
    assert.ok(status < 500, text);
    assert.doesNotMatch(text, /\\n +at |node:|\.[jt]s\b|SQLITE|SELECT|\/src\//);
  }
});
