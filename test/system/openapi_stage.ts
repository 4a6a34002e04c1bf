import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { findErrors } from "../helpers/json_schema.ts";
import { asFields, lookUp } from "../helpers/openapi_rules.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

export type Fields = Readonly<Record<string, unknown>>;

const ENDPOINTS = fileURLToPath(new URL("../fixtures/endpoints", import.meta.url));
const METHODS = ["get", "post", "put", "patch", "delete"];

/** A server with endpoint modules and a receiver, and its OpenAPI document for the admin. */
export async function startOpenApiStage() {
  const receiver = await startReceiver();
  const gatepost = await startGatepost({
    env: {
      GATEPOST_ENDPOINTS: ENDPOINTS,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
      GATEPOST_RESEND_DELAYS: "none",
    },
  });
  const document: Fields =
    readObject(await gatepost.api.get("/openapi.json", bearer(gatepost.adminToken)));
  /** The operations of which a test has had a successful response. */
  const succeeded = new Set<string>();
  const operations = Object.entries(asFields(document["paths"])).flatMap(([path, item]) =>
    METHODS.filter((method) => asFields(item)[method] !== undefined)
      .map((method) => [path, method, asFields(asFields(item)[method])] as const)
  );

  function findOperation(method: string, path: string) {
    const bare = path.replace(/\?.*/, "");
    const found = operations.filter(([template, how]) =>
      how === method.toLowerCase() &&
      new RegExp(`^${template.replace(/\{[^}]*\}/g, "[^/]+").replaceAll(".", "\\.")}$`).test(bare)
    );
    // A literal segment goes before a parameter.
    return found.sort(([one], [other]) => one.split("{").length - other.split("{").length)[0];
  }

  /** Checks a response against what the document declares of it, to the last member. */
  function checkResponse(method: string, path: string, response: ClientResponse): ClientResponse {
    const [template = "", , operation = {}] = findOperation(method, path) ?? [];
    const seen = `${response.status} ${response.text.slice(0, 500)}`;
    const note = `${method} ${path} (${template}): ${seen}`;
    const responses = asFields(operation["responses"]);
    const declared = asFields(
      responses[response.status] ?? responses[`${String(response.status)[0]}XX`] ??
        responses["default"],
    );
    const reference = declared["$ref"];
    const described = typeof reference === "string"
      ? asFields(lookUp(document, reference))
      : declared;
    assert.ok(described["description"], note);
    const content = asFields(described["content"]);
    const type = (response.headers.get("content-type") ?? "").replace(/;.*/, "");
    if (Object.keys(content).length === 0) {
      assert.equal(response.text, "", note);
    } else {
      const media = asFields(content[type]);
      assert.ok(content[type], `${type} is not declared: ${note}`);
      if (type.endsWith("json") && media["schema"] !== undefined) {
        const errors = findErrors(asFields(media["schema"]), JSON.parse(response.text), {
          resolve: (ref) => lookUp(document, ref),
          strict: true,
        });
        assert.deepEqual(errors, [], note);
      }
    }
    const location = asFields(described["headers"])["Location"] !== undefined;
    assert.equal(response.headers.has("location"), response.status < 400 && location, note);
    if (response.status < 400) succeeded.add(String(operation["operationId"]));
    return response;
  }

  async function ask(
    method: string,
    path: string,
    body?: unknown,
    token = gatepost.adminToken,
  ): Promise<Readonly<Record<string, unknown>>> {
    const headers = token === "" ? {} : bearer(token);
    const response = await gatepost.api.sendJson(method, path, body, headers);
    checkResponse(method, path, response);
    assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${response.text}`);
    return response.text === "" ? {} : readObject(response);
  }

  const stop = async () => {
    await gatepost.stop();
    await receiver.close();
  };
  const found = { document, operations, findOperation, succeeded };
  return { gatepost, receiver, ...found, checkResponse, ask, stop };
}
