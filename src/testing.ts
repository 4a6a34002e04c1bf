import { authenticateBy } from "./api/bearer.ts";
import { createPipeline } from "./api/pipeline.ts";
import { createRouter } from "./api/router.ts";
import { namesIn, PARAMETER, toTemplates } from "./api/system/openapi_operation.ts";
import { createServiceMetrics } from "./app/metrics.ts";
import { type HttpRequest, type HttpResponse, tooLarge } from "./base/http_message.ts";
import { createLogger } from "./base/log.ts";
import { isPlainObject } from "./base/plain_object.ts";
import type { FieldError } from "./base/problem.ts";
import { reportTo } from "./base/shape.ts";
import { parseConfig } from "./config.ts";
import { createMemoryDatabase } from "./database/memory.ts";
import { catalogue } from "./hosting/catalogue.ts";
import { typeError } from "./hosting/check_data.ts";
import { checkEndpoint, type LoadedEndpoint } from "./hosting/check_endpoint.ts";
import { hostedOperation } from "./hosting/handle.ts";
import { newRequestId } from "./http/request_id.ts";
import type { Call, CallableEndpoint, CallOptions, StoredEvent } from "./mod/testing.ts";
import type { Caller } from "./oauth/principal.ts";
import { listDispatched } from "./store/events.ts";

export type * from "./mod/testing.ts";

const JSON_TYPE = /^[\w.-]+\/([\w.-]+\+)?json\s*(;|$)/i;
const issuer = "https://api.test";
const now = Date.now;
const parsed = parseConfig({}); // the defaults
if (!parsed.ok) throw new Error(parsed.errors.join("\n"));
const { config } = parsed;
const log = createLogger({
  level: "warn",
  write: (lines) => console.error(lines.trimEnd()),
  now,
  pretty: true,
});
const metrics = createServiceMetrics();

/** Calls an endpoint without a server; {@link Call} says how. */
export const call: Call = async <Body>(given: CallableEndpoint, options: CallOptions = {}) => {
  const endpoint = load(given);
  const database = createMemoryDatabase();
  const events = catalogue([endpoint]);
  const services = { config, issuer, database, log, metrics, wake() {}, now, events };
  const caller = callerOf(endpoint, options.caller);
  const handle = createPipeline({
    bearer: { authenticate: authenticateBy(() => caller, issuer) },
    issuer,
    site: { name: "test", host: new URL(issuer).host, basePath: "" },
    log,
    routers: [createRouter([hostedOperation(endpoint, services)])],
    isOriginAllowed: async () => true,
    limit: () => undefined,
    maxBodyBytes: config.maxBodyBytes,
    now,
    observe() {},
  });
  const request = await makeRequest(endpoint, options);
  const response = await handle(request);
  log.flush();
  const { status } = response;
  const headers = new Headers(Object.entries(response.headers ?? {}).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one])
  ));
  const type = headers.get("content-type") ?? "";
  const body = await readBody(response, request, type);
  const isOutput = (status === 200 || status === 201) && JSON_TYPE.test(type);
  const errors: FieldError[] = [];
  if (isOutput) await endpoint.output?.parse(body, reportTo(errors));
  if (errors.length > 0) throw typeError("The response does not match its output:", errors);
  const stored = (await listDispatched(database)).map(toStoredEvent);
  return { status, headers, body: body as Body, events: stored };
};

/** Loads the endpoint as the server does. Throws TypeError that lists every error. */
function load(given: unknown): LoadedEndpoint {
  if (!isPlainObject(given)) throw new TypeError("An endpoint is a plain object: call() got none.");
  const errors: FieldError[] = [];
  const endpoint = checkEndpoint(given, { file: "the test", exportName: "endpoint" }, errors);
  if (endpoint) return endpoint;
  throw typeError("This is no endpoint that can be served:", errors);
}

async function makeRequest(
  { method, pattern, scopes }: LoadedEndpoint,
  { params = {}, query = {}, body, headers: given = {}, caller = {} }: CallOptions,
): Promise<HttpRequest> {
  const pairs = query instanceof URLSearchParams ? [...query] : Object.entries(query)
    .flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)]));
  const url = new URL(issuer + fillPath(pattern.text, params));
  url.search = String(new URLSearchParams(pairs));
  const headers = new Headers(given);
  if (scopes && caller) headers.set("authorization", "Bearer test");
  const isJson = body !== undefined && !isSentAsItIs(body);
  if (isJson && !headers.has("content-type")) headers.set("content-type", "application/json");
  const sent = isJson ? JSON.stringify(body) : body ?? null;
  const request = new Request(url, { method, headers, body: sent });
  const bytes = Buffer.from(await request.arrayBuffer());
  if (bytes.length > 0) request.headers.set("content-length", String(bytes.length));
  const controller = new AbortController();
  return {
    id: newRequestId(),
    method,
    path: url.pathname,
    query: url.search.slice(1),
    headers: Object.fromEntries(request.headers),
    address: "127.0.0.1",
    signal: controller.signal,
    isGone: false,
    abort: () => controller.abort(),
    readBody: async (maxBytes) => {
      if (bytes.length > maxBytes) throw tooLarge(maxBytes);
      return bytes;
    },
  };
}

function isSentAsItIs(body: unknown): body is NonNullable<RequestInit["body"]> {
  return typeof body === "string" || ArrayBuffer.isView(body) ||
    [ArrayBuffer, Blob, FormData, URLSearchParams].some((type) => body instanceof type);
}

/** Returns the longest path that the parameters can fill; throws TypeError if one is missing. */
function fillPath(path: string, params: NonNullable<CallOptions["params"]>): string {
  const templates = toTemplates(path);
  const missing = (template = "") => namesIn(template).find((name) => params[name] === undefined);
  const template = templates.find((each) => missing(each) === undefined);
  if (template === undefined) {
    throw new TypeError(`params.${missing(templates.at(-1))} is missing: the path is ${path}`);
  }
  // A parameter of several segments keeps its slashes.
  return template.replace(PARAMETER, (_, name: string) =>
    String(params[name]).split("/").map(encodeURIComponent).join("/"));
}

/** Returns the caller of a request. */
function callerOf(
  { scopes: needed = [] }: LoadedEndpoint,
  given: CallOptions["caller"] = {},
): Caller | undefined {
  if (given === null) return undefined;
  const { kind = "user", scopes = needed } = given;
  const { sub = `${{ user: "u", app: "a", principal: "x" }[kind]}00000000` } = given;
  const { clientId = kind === "app" ? sub : "a00000000" } = given;
  return { sub, kind, clientId, scopes, grantId: "g00000000", jti: "t0", expiresAtMs: Infinity };
}

/** The body as {@link CallResult} has it. */
async function readBody(
  { body }: HttpResponse,
  request: HttpRequest,
  type: string,
): Promise<unknown> {
  if (body === undefined) return undefined;
  const { readable, writable } = new TransformStream<string | Uint8Array, Uint8Array>({
    // node:http accepts strings in a stream, but a Response does not.
    transform: (sent, next) => next.enqueue(typeof sent === "string" ? Buffer.from(sent) : sent),
  });
  const whole = new Response(body instanceof Uint8Array ? new Uint8Array(body) : body);
  whole.body?.pipeTo(writable).catch(() => request.abort());
  if (/^text\/event-stream\b/i.test(type)) return readable;
  const response = new Response(readable);
  if (JSON_TYPE.test(type)) return response.json();
  return /^text\//i.test(type) ? response.text() : response.bytes();
}

function toStoredEvent(
  { json, subject, key, ...event }: Awaited<ReturnType<typeof listDispatched>>[number],
): StoredEvent {
  const more = { ...(subject !== null && { subject }), ...(key !== null && { key }) };
  return { ...event, data: JSON.parse(json), ...more };
}
