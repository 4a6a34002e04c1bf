import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Gatepost, PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import { findErrors } from "../helpers/json_schema.ts";
import { asFields, lookUp } from "../helpers/openapi_rules.ts";
import { openRandom, type Random } from "../helpers/random.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

/** How many calls are made; GATEPOST_FUZZ_CALLS says another number. */
const CALLS = Number(process.env["GATEPOST_FUZZ_CALLS"] || 3_000);
const AT_ONCE = 8;
const ENDPOINTS = fileURLToPath(new URL("../../scripts/demo/endpoints", import.meta.url));
const METHODS = ["get", "post", "put", "patch", "delete"];
const TEXTS = [
  "", "a", "é", "\0", "\u202ex", "a".repeat(300), "a".repeat(5_000), "__proto__", "1", "null", "%",
  "../x", "'; --", "😀", "\ud800", " a ", "https://x.example/", "2030-01-01T00:00:00Z", "admin",
];
const VALUES = [null, true, 0, -1, 1e21, 1.5, "", [], {}, [null], { a: 1 }];

type Fields = Readonly<Record<string, unknown>>;

/** An operation of the document. */
interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Fields;
}

let gatepost: Gatepost;
let receiver: Receiver;
let document: Fields = {};
before(async () => {
  receiver = await startReceiver();
  gatepost = await startGatepost({
    env: {
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_RESEND_DELAYS: "1s",
      GATEPOST_ENDPOINTS: ENDPOINTS,
    },
  });
  document = readObject(await gatepost.api.get("/openapi.json"));
});
after(async () => {
  await gatepost.stop();
  await receiver.close();
});

const resolve = (reference: string) => lookUp(document, reference);
const follow = (value: unknown): Fields => {
  const { $ref } = asFields(value);
  return $ref === undefined ? asFields(value) : follow(resolve(String($ref)));
};
const listOf = (value: unknown): readonly unknown[] => Array.isArray(value) ? value : [];

/** Every operation whose response ends by itself. */
function listCalls(): Call[] {
  return Object.entries(asFields(document["paths"])).flatMap(([path, item]) =>
    Object.entries(asFields(item))
      .filter(([method]) => METHODS.includes(method) && !path.endsWith("/stream"))
      .map(([method, operation]) => ({ method, path, operation: asFields(operation) }))
  );
}

/** A value that mostly fits a schema. */
function makeValue(random: Random, given: unknown): unknown {
  if (random.chance(4)) return random.pick([...VALUES, random.pick(TEXTS)]);
  const schema = follow(given);
  const { minimum = 0, maximum = 1_000 } = schema;
  const choices = [...listOf(schema["enum"]), ...listOf(schema["examples"])];
  if (Object.hasOwn(schema, "const")) return schema["const"];
  if (choices.length > 0) return random.pick(choices);
  const inner = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])];
  if (inner.length > 0) return makeValue(random, random.pick(inner));
  switch (random.pick([schema["type"] ?? "object"].flat())) {
    case "null":
      return null;
    case "boolean":
      return random.chance(50);
    case "integer":
    case "number":
      if (random.chance(20)) return random.pick([Number(minimum) - 1, Number(maximum) + 1]);
      return Number(minimum) + random.below(Math.min(1_000, Number(maximum) - Number(minimum) + 1));
    case "array":
      return Array.from({ length: random.below(3) }, () => makeValue(random, schema["items"]));
    case "object": {
      const required = listOf(schema["required"]);
      const members = Object.entries(asFields(schema["properties"]))
        .filter(([name]) => random.chance(required.includes(name) ? 97 : 35))
        .map(([name, member]) => [name, makeValue(random, member)] as const);
      return Object.fromEntries(random.chance(5) ? [...members, [random.pick(TEXTS), 1]] : members);
    }
    default:
      if (random.chance(40)) return random.pick(TEXTS);
      if (schema["format"] === "uri" || String(schema["pattern"]).includes("://")) {
        return `${receiver.url}/${random.pick("abc")}`;
      }
      if (schema["format"] === "date-time") return new Date(random.below(2 ** 31)).toISOString();
      return random.pick(["order.created", "consumer", "backend", `long pass ${random.below(99)}`]);
  }
}

test("random calls get responses as documented, and never a 5xx", async (t) => {
  const random = openRandom(t);
  const { api } = gatepost;
  const consumer = await gatepost.createUser();
  const tokens = { admin: gatepost.adminToken, consumer: await gatepost.login(consumer) };
  const { sub } = readObject(await api.get("/authorization/whoami", bearer(tokens.admin)));
  const logins = {
    admin: { id: String(sub), username: "admin", password: PASSWORD },
    consumer,
  };
  const kept = [logins.admin.id, consumer.id];
  /** The ids for paths, by who has seen them and the path that lists or makes them. */
  const known = new Map<string, string[]>();
  const reached = new Set<string>();
  const wrong = new Set<string>();

  /** The path of an operation, with ids that mostly exist. */
  function fillPath(path: string, who: string): string {
    return path.replaceAll(/\{\w+\}/g, (_, at: number) => {
      const ids = known.get(`${who} ${path.slice(0, at - 1)}`) ?? [];
      const id = ids.length > 0 && random.chance(92) ? random.pick(ids.slice(-20)) : "none";
      return encodeURIComponent(id);
    });
  }

  function learn(who: string, path: string, body: unknown): void {
    const { items } = asFields(body);
    for (const item of items === undefined ? [body] : listOf(items)) {
      const { id, client_id = id, kid = client_id, name = kid } = asFields(item);
      const found = known.getOrInsertComputed(`${who} ${path}`, () => []);
      for (const each of [id, client_id, kid, name]) {
        if (typeof each === "string") found.push(each);
      }
    }
  }

  async function call({ method, path, operation }: Call): Promise<void> {
    const who = random.pick(["admin", "admin", "consumer", "consumer", "nobody"] as const);
    const query = new URLSearchParams();
    for (const each of listOf(operation["parameters"]).map(follow)) {
      if (each["in"] !== "query" || random.chance(75)) continue;
      query.append(String(each["name"]), String(makeValue(random, each["schema"])));
    }
    const filled = fillPath(path, who);
    if (method !== "get" && kept.some((id) => filled.includes(id))) return;
    const types = Object.entries(asFields(follow(operation["requestBody"])["content"]));
    const [type, media] = types.length > 0 ? random.pick(types) : [];
    const value = makeValue(random, asFields(media)["schema"]);
    const body = type === undefined ? undefined
      : type.endsWith("json") ? JSON.stringify(value)
      : String(new URLSearchParams(Object.entries(asFields(value)).map(([name, each]) =>
        [name, String(each)])));
    const response = await api.send(method.toUpperCase(), `${filled}?${query}`, {
      headers: {
        ...who === "nobody" ? {} : bearer(tokens[who]),
        ...type === undefined ? {} : { "content-type": type },
      },
      ...body === undefined ? {} : { body },
    });
    const { status, text } = response;
    if (status === 401 && who !== "nobody") tokens[who] = await gatepost.login(logins[who]);
    const report = (what: string) =>
      void wrong.add(`${method} ${filled}?${query} ${body}: ${status} ${what}`.slice(0, 1_000));
    if (status >= 500) report(text);
    const responses = asFields(operation["responses"]);
    const content = follow(responses[status] ?? responses["default"])["content"];
    const shown = response.headers.get("content-type")?.split(";")[0] ?? "";
    if (status < 300) reached.add(`${method} ${path}`);
    if (text === "" || !shown.endsWith("json")) return;
    const { schema } = asFields(asFields(content)[shown]);
    if (schema === undefined) return report(`is not documented as ${shown}`);
    if (status < 300) learn(who, path, response.json());
    for (const error of findErrors(asFields(schema), response.json(), { resolve, strict: true })) {
      report(error);
    }
  }

  const calls = listCalls();
  const work = Array.from({ length: CALLS }, () => random.pick(calls)).values();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (const each of work) await call(each);
  }));
  assert.deepEqual([...wrong].slice(0, 5), []);
  t.diagnostic(`${reached.size} of ${calls.length} operations succeeded`);
  assert.ok(reached.size > calls.length / 2, `${reached.size} of ${calls.length}`);
});
