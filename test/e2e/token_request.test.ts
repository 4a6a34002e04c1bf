// On SQLite alone: it is about the form of requests, before anything is stored.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost, type TestApp } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { basicAuth } from "../helpers/requests.ts";
import { assertOAuthError, readTokens } from "../helpers/responses.ts";

const FORM = "application/x-www-form-urlencoded";

let gatepost: Gatepost;
let app: TestApp;
before(async () => {
  gatepost = await startGatepost();
  const grants = ["authorization_code", "refresh_token", "client_credentials", "password"];
  app = await gatepost.createApp({ grants, scopes: ["consumer", "orders"] });
});
after(() => gatepost.stop());

/** Sends a body to the token endpoint as it is, with Basic authentication. */
function post(
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ClientResponse> {
  const sent = { "content-type": FORM, ...basicAuth(app), ...headers };
  return gatepost.api.send("POST", "/authorization/token", { headers: sent, body });
}

describe("the token endpoint returns 400 invalid_request (RFC 6749 §3.2, §5.2) for", () => {
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
    ["a missing code", "grant_type=authorization_code"],
    ["an empty code", "grant_type=authorization_code&code="],
    ["a missing refresh token", "grant_type=refresh_token"],
    ["an empty refresh token", "grant_type=refresh_token&refresh_token="],
    ["a missing username", "grant_type=password&password=x"],
    ["a missing password", "grant_type=password&username=x"],
    ["an empty password", "grant_type=password&username=x&password="],
    ["half an escape", `${cc}&scope=%4`],
    ["an escape without digits", `${cc}&scope=%zz`],
    ["an escape that is not UTF-8", `${cc}&scope=%ff`],
    ["JSON with the content type of a form", '{"grant_type": "client_credentials"}'],
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
    const response = await gatepost.api.send("POST", "/authorization/token", { headers, body });
    assertOAuthError(response, 400, "invalid_request");
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
      const response = await gatepost.api.send("POST", path, { headers, body: cc });
      assertOAuthError(response, 400, "invalid_request");
    });
  }
});

describe("the token endpoint accepts", () => {
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

  test("an unknown parameter in the query", async () => {
    const headers = { "content-type": FORM, ...basicAuth(app) };
    const path = "/authorization/token?version=1";
    readTokens(await gatepost.api.send("POST", path, { headers, body: cc }));
  });
});

describe("the token endpoint refuses", () => {
  for (const type of ["implicit", "token", "Client_Credentials", "client_credentials ",
    "urn:ietf:params:oauth:grant-type:jwt-bearer", "device_code", "__proto__", "constructor"]) {
    test(`grant_type ${JSON.stringify(type)} as unsupported_grant_type`, async () => {
      const response = await gatepost.token(app, { grant_type: type });
      assertOAuthError(response, 400, "unsupported_grant_type");
    });
  }

  test("a form of more than 64 KiB with 413", async () => {
    const response = await post(`grant_type=client_credentials&x=${"x".repeat(65_536)}`);
    assertOAuthError(response, 413, "invalid_request");
  });

  test("a form of 300 parameters, and serves the next request", async () => {
    const many = Array.from({ length: 300 }, (_, index) => `p${index}=1`).join("&");
    assertOAuthError(await post(`grant_type=client_credentials&${many}`), 400, "invalid_request");
    readTokens(await post("grant_type=client_credentials"));
  });

  for (const method of ["GET", "PUT", "DELETE"]) {
    test(`${method} with 405 and Allow`, async () => {
      const response = await gatepost.api.send(method, "/authorization/token");
      assert.equal(response.status, 405);
      assert.match(response.headers.get("allow") ?? "", /\bPOST\b/);
    });
  }

  test("two resources of which one is not this service", async () => {
    const own = encodeURIComponent(gatepost.issuer);
    const body = `grant_type=client_credentials&resource=${own}&resource=https%3A%2F%2Fa.example`;
    assertOAuthError(await post(body), 400, "invalid_target");
    readTokens(await post(`grant_type=client_credentials&resource=${own}&resource=${own}`));
  });

  test("without a word of these requests in the description", async () => {
    const word = "zzyzx";
    const bodies = [
      `grant_type=${word}`,
      `grant_type=client_credentials&scope=%22${word}%22`,
      `grant_type=authorization_code&code=${word}`,
      `grant_type=refresh_token&refresh_token=${word}`,
      `grant_type=password&username=${word}&password=${word}`,
      `grant_type=client_credentials&resource=${word}`,
      `grant_type=client_credentials&${word}=1&${word}=2`,
    ];
    for (const body of bodies) {
      const response = await post(body);
      assert.equal(response.status, 400, response.text);
      assert.ok(!response.text.includes(word), response.text);
    }
  });
});

const resources: [what: string, resource: (issuer: string) => string, isOurs: boolean][] = [
  ["this service", (issuer) => issuer, true],
  ["another service", () => "https://other.example", false],
  ["an address below this service", (issuer) => `${issuer}/authorization`, true],
  ["this service in upper case", (issuer) => issuer.toUpperCase(), false],
  ["a text that is no URI", () => "no URI", false],
];
for (const [what, resource, isOurs] of resources) {
  const verb = isOurs ? "accepts" : "refuses";
  test(`the token endpoint ${verb} ${what} as the resource (RFC 8707 §2)`, async () => {
    const fields = { grant_type: "client_credentials", resource: resource(gatepost.issuer) };
    const response = await gatepost.token(app, fields);
    if (isOurs) readTokens(response);
    else assertOAuthError(response, 400, "invalid_target");
  });
}
