import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PASSWORD } from "../helpers/gatepost.ts";
import { findErrors } from "../helpers/json_schema.ts";
import { asFields, lookUp } from "../helpers/openapi_rules.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { type Fields, startOpenApiStage } from "./openapi_stage.ts";

const { gatepost, receiver, ask, stop } = await startOpenApiStage();
after(stop);
const document = readObject(await gatepost.api.get("/openapi.json"));

describe("the document allows what the server accepts, and nothing that it refuses:", () => {
  const LONG = "x".repeat(2000);
  /** Values of some members of a request, beside members that are valid. */
  const BODIES: readonly [schema: string, path: string, good: Fields, values: Fields[]][] = [
    ["NewUser", "/backend/user", { password: PASSWORD }, [
      { username: "a-b@c.d_e+1" },
      ...["", "a b", "ä", "x".repeat(65)].map((username) => ({ username })),
    ]],
    ["NewUser", "/backend/user", { username: "USERNAME" }, [
      { password: "12345678" },
      { password: "x".repeat(1024) },
      { password: "1234567" },
      { password: "x".repeat(1025) },
      { password: PASSWORD, scopes: ["orders:read", "~!"] },
      ...["", "a b", "a,b", 'a"b', "a\\b", "ä", "x".repeat(65)].map((scope) =>
        ({ password: PASSWORD, scopes: [scope] })
      ),
      { password: PASSWORD, scopes: Array.from({ length: 101 }, (_, index) => `s${index}`) },
      { password: PASSWORD, more: 1 },
      ...["100/1m", "1/1500s", "100/often", "100/1", "0/1m", null]
        .map((rate) => ({ password: PASSWORD, rate })),
    ]],
    ["NewApp", "/backend/app", { url: "https://app.example" }, [
      ...[" a ", "\u{1f600}".repeat(100), "ä&<"].map((name) => ({ name })),
      ...["", " ", "\u2003", "a\nb", "a\u0085b", "x".repeat(101)].map((name) => ({ name })),
      { name: "a", grants: ["password"] },
      { name: "a", grants: ["implicit"] },
      { name: "a", redirect_uris: ["https://app.example/cb"] },
      ...["ftp://app.example/", "https://app.example/#a", `https://app.example/${LONG}${LONG}`]
        .map((uri) => ({ name: "a", redirect_uris: [uri] })),
    ]],
    ["NewApp", "/backend/app", { name: "a" }, [
      ...["https://app.example", "http://127.0.0.1", "https://app.example/a/b"],
      ...["ftp://app.example", "https://app.example/?a", "https://app.example/#"],
      ...["app.example", ""],
    ].map((url) => ({ url }))],
    ["NewSubscription", "/consumer/subscription", { event: "EVENT" }, [
      ...["https://a.example/b?c", "http://a.example", "https://münchen.example/{ä}"],
      ...["https:///b", "https://a.example/b c", "https://a.example/#", "https://a\\b"],
      ...["ftp://a.example", "/b", "", `https://a.example/${LONG}${LONG}`],
    ].map((endpoint) => ({ endpoint }))],
    ["NewEvent", "/backend/event", { data: 1 }, [
      ...["a.b:c-d_e", "gatepostal.x", "x".repeat(128)].map((name) => ({ name })),
      ...["", "a b", "gatepost.x", "x".repeat(129)].map((name) => ({ name })),
      { name: "a", subject: "u12345678" },
      ...["", "u1", "x12345678", "U12345678"].map((subject) => ({ name: "a", subject })),
    ]],
    ["Revocation", "/backend/grant/revoke", {}, [
      { app: `a${"0".repeat(24)}` },
      ...["", "Login", "a1"].map((app) => ({ app })),
      ...["", "u1", `a${"0".repeat(24)}`].map((user) => ({ user })),
      {},
    ]],
  ];
  const fresh = (fields: Fields) => ({
    ...fields,
    ...("username" in fields && fields["username"] === "USERNAME" && { username: newName("u") }),
    ...("event" in fields && { event: newName("event") }),
  });
  for (const [name, path, good, values] of BODIES) {
    for (const each of values) {
      const member = JSON.stringify(each).slice(0, 60);
      test(`${name} with ${member}`, async () => {
        const body = fresh({ ...good, ...each });
        const response = await gatepost.api.postJson(path, body, bearer(gatepost.adminToken));
        const schema = asFields(lookUp(document, `#/components/schemas/${name}`));
        const errors = findErrors(schema, body, { resolve: (ref) => lookUp(document, ref) });
        assert.notEqual(response.status, 401);
        assert.equal(
          errors.length > 0,
          response.status === 400,
          `${response.text} ${errors.join()}`,
        );
      });
    }
  }

  const ID = "0".repeat(24);
  const QUERIES: readonly [path: string, parameter: string, values: readonly string[]][] = [
    ["/backend/user", "cursor", [`u${ID}`, "0az", "a b", "A", "x".repeat(65)]],
    ["/backend/user", "limit", ["1", "200"]],
    ["/backend/grant", "user", [`u${ID}`, "u1", `a${ID}`, `u${ID}0`]],
    ["/backend/grant", "app", [`a${ID}`, "login", "a1", `u${ID}`]],
    ["/backend/event", "name", ["a.b", "a b", "x".repeat(129)]],
    ["/backend/event", "status", ["pending", "distributed", "failed"]],
    ["/backend/delivery", "status", ["pending", "failed", "distributed"]],
    ["/backend/delivery", "subscription", [`s${ID}`, "s1"]],
    ["/backend/delivery", "event", [`e${ID}`, "e1"]],
    ["/backend/audit", "actor", ["x".repeat(200), "x".repeat(201)]],
    ["/backend/audit", "since", ["2030-01-31T12:00:00Z", "2030-01-31", "yesterday"]],
  ];
  for (const [path, parameter, values] of QUERIES) {
    for (const value of values) {
      test(`${path}?${parameter}=${value.slice(0, 30)}`, async () => {
        const operation = asFields(asFields(asFields(document["paths"])[path])["get"]);
        const { parameters } = operation;
        const declared = [parameters].flat().map(asFields)
          .find((each) => each["name"] === parameter);
        assert.ok(declared);
        const given = parameter === "limit" ? Number(value) : value;
        const options = { resolve: (ref: string) => lookUp(document, ref) };
        const errors = findErrors(asFields(declared["schema"]), given, options);
        const query = new URLSearchParams({ [parameter]: value });
        const response = await gatepost.api.get(`${path}?${query}`, bearer(gatepost.adminToken));
        assert.notEqual(response.status, 401);
        assert.equal(
          errors.length > 0,
          response.status === 400,
          `${response.text} ${errors.join()}`,
        );
      });
    }
  }
});

for (const key of ['"a b"', "a b", "x".repeat(255), "x".repeat(256), '"', "é", ""]) {
  test(`Idempotency-Key: ${key.slice(0, 30)}`, async () => {
    const [declared] = [lookUp(document, "#/paths/~1backend~1event/post/parameters")].flat();
    const resolve = (ref: string) => lookUp(document, ref);
    const errors = findErrors(asFields(asFields(declared)["schema"]), key, { resolve });
    const headers = { ...bearer(gatepost.adminToken), "idempotency-key": key };
    const body = { name: "a", data: 1 };
    const response = await gatepost.api.postJson("/backend/event", body, headers);
    assert.equal(response.status, errors.length > 0 ? 400 : 202, response.text);
  });
}

test("every list refuses an invalid cursor", async () => {
  const lists = Object.entries(asFields(document["paths"])).filter(([, item]) =>
    [asFields(asFields(item)["get"])["parameters"]].flat()
      .some((each) => each !== undefined && asFields(each)["name"] === "cursor")
  ).map(([path]) => path);
  assert.ok(lists.length >= 14, lists.join());
  for (const path of lists) {
    const url = `${path.replace(/\{.*?\}/g, "x")}?cursor=zz`;
    const response = await gatepost.api.get(url, bearer(gatepost.adminToken));
    assert.equal(response.status, 400, `${path}: ${response.text}`);
    assert.match(response.text, /"pointer":"\/cursor"/);
  }
});

test("accepted bodies fit their schema, and bodies that do not fit are refused", async () => {
  const user = { username: newName("user"), password: "\u{1f600}".repeat(8) };
  const issuer = { issuer: "https://issuer.example", scopes: ["consumer"], audience: "a b" };
  const subscription = { event: newName("e"), endpoint: receiver.url.replace("http", "HTTP") };
  const rows: [name: string, path: string, body: object, status: number][] = [
    ["NewUser", "/backend/user", user, 201],
    ["NewUser", "/backend/user", { ...user, rate: "often" }, 400],
    ["NewIssuer", "/backend/issuer", issuer, 400],
    ["NewSubscription", "/consumer/subscription", subscription, 201],
  ];
  const resolve = (ref: string) => lookUp(document, ref);
  for (const [name, path, body, status] of rows) {
    const response = await gatepost.api.postJson(path, body, bearer(gatepost.adminToken));
    assert.equal(response.status, status, response.text);
    const errors = findErrors({ $ref: `#/components/schemas/${name}` }, body, { resolve });
    assert.equal(errors.length > 0, status === 400, `${name} ${errors.join()}`);
  }
  const q = encodeURIComponent("\u{1f600}".repeat(200)); // as many as its maxLength
  await ask("GET", `/backend/user?q=${q}`);
});
