import { type HttpResponse, isHeaderName } from "../base/http_message.ts";
import { encodeJson } from "../base/json.ts";
import { isPlainObject } from "../base/plain_object.ts";
import type { Answer } from "../mod.ts";

type ResponseHeaders = Record<string, string | string[]>;
type HostedResponse = HttpResponse & { readonly headers: ResponseHeaders };

const ANSWER_KEYS = ["status", "headers", "body"];
const BODILESS = [204, 205, 304];

/** Headers of connection and message (RFC 9110 §7.6.1), and X-Request-Id. */
const SERVERS_OWN = [
  "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer",
  "transfer-encoding", "upgrade", "x-request-id",
];

/** Headers that the service may add, in its spelling, so that no name is there twice. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  "Vary", "X-Content-Type-Options", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
  "Cache-Control", "Retry-After", "WWW-Authenticate", "RateLimit", "RateLimit-Policy",
].map((name) => [name.toLowerCase(), name]));

/**
 * Turns what a handler returned into a response; mod/endpoint.ts has the rules for authors. Throws
 * TypeError for a body that JSON cannot hold, for headers that cannot be sent, and for a Response
 * that is used up.
 */
export function toResponse(result: unknown): HttpResponse {
  if (result === undefined) return { status: 204 };
  if (result instanceof Response) return inSandbox(fromResponse(result));
  if (isPlainObject(result) && isAnswer(result)) return inSandbox(fromAnswer(result));
  return { status: 200, headers: JSON_TYPE, body: encodeData(result) };
}

/** The types that browsers show as a page with running scripts: HTML, every XML, and multipart. */
const PAGE_TYPE = /html|[/+]x(?:ml|sl)|x-mixed-replace/i;

/**
 * Sandboxes a hosted page, which would share the origin of the sign-in pages (CSP3 §6.3.2), unless
 * its author has given it a policy.
 */
function inSandbox(response: HostedResponse): HostedResponse {
  const { headers } = response;
  const isPage = PAGE_TYPE.test(String(headers["content-type"]));
  if (!isPage || headers["content-security-policy"] !== undefined) return response;
  return { ...response, headers: { ...headers, "content-security-policy": SANDBOX } };
}

const SANDBOX = "sandbox allow-scripts allow-forms allow-popups";
const JSON_TYPE = { "content-type": "application/json" };

function isAnswer(result: { readonly status?: unknown }): result is Answer {
  return isStatus(result.status, 200, 599) &&
    Object.keys(result).every((key) => ANSWER_KEYS.includes(key));
}

/** Whether this is a status from `least` to `most`. */
export function isStatus(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

function fromAnswer({ status, headers: given, body }: Answer): HostedResponse {
  const headers = readHeaders(given);
  if (body === undefined || BODILESS.includes(status)) return { status, headers };
  if (body instanceof Uint8Array) {
    return { status, headers: { "content-type": "application/octet-stream", ...headers }, body };
  }
  const hasType = headers["content-type"] !== undefined;
  if (hasType && typeof body === "string") return { status, headers, body };
  return { status, headers: { ...JSON_TYPE, ...headers }, body: encodeData(body) };
}

function encodeData(data: unknown): string {
  // JSON would show the inside of a stream of Node, and an object with a member for each byte.
  const isRaw = typeof data === "object" && data !== null && (Symbol.asyncIterator in data ||
    ArrayBuffer.isView(data) || data instanceof ArrayBuffer || data instanceof Blob);
  if (isRaw) throw new TypeError("Not JSON: { status, body } takes bytes, a Response streams.");
  return encodeJson(data);
}

/** Returns the headers that an author gave. Throws TypeError for headers that cannot be sent. */
export function readHeaders(given: unknown): ResponseHeaders {
  if (given === undefined) return {};
  const fields = given instanceof Headers ? fieldsOf(given) : given;
  if (!isPlainObject(fields)) throw new TypeError("A response's headers must be a plain object.");
  const headers: ResponseHeaders = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const one of values) checkHeader(name, one);
    const lower = name.toLowerCase();
    const spelled = SPELLINGS.get(lower) ?? lower;
    if (Object.hasOwn(headers, spelled)) throw new TypeError(`The header ${lower} is there twice.`);
    headers[spelled] = Array.isArray(value) ? values.map(String) : String(value);
  }
  return headers;
}

function checkHeader(name: string, value: unknown): void {
  if (!isHeaderName(name)) throw new TypeError("A header's name is not valid.");
  if (SERVERS_OWN.includes(name.toLowerCase())) {
    throw new TypeError(`The header ${name} is the server's to set.`);
  }
  // RFC 9110 §5.5: no CR, LF or NUL, which would begin a header of their own, nor other controls.
  const isText = typeof value === "string" || typeof value === "number";
  if (!isText || !/^[\t\x20-\x7e\x80-\xff]*$/.test(String(value))) {
    throw new TypeError(`The header ${name} must be a number, or Latin-1 text without controls.`);
  }
}

function fromResponse(given: Response): HostedResponse {
  const { status, body, bodyUsed, headers } = given;
  if (status < 200) throw new TypeError("A Response of an error cannot be sent.");
  if (bodyUsed || body?.locked === true) throw new TypeError("Make a Response for each request.");
  // Only a Response that came from fetch has a URL; its body is decoded already.
  const decoded = given.url === "" ? [] : ["content-encoding"];
  const named = (headers.get("connection") ?? "").toLowerCase().split(/[\s,]+/);
  const left = [...SERVERS_OWN, ...decoded, ...named];
  const kept = Object.entries(fieldsOf(headers)).filter(([name]) => !left.includes(name));
  // Checked before events are stored: fetch allows control characters that HTTP cannot carry.
  const response = { status, headers: readHeaders(Object.fromEntries(kept)) };
  return body === null ? response : { ...response, body };
}

function fieldsOf(headers: Headers): ResponseHeaders {
  const cookies = headers.getSetCookie();
  const fields = Object.fromEntries(headers);
  return cookies.length === 0 ? fields : { ...fields, "set-cookie": cookies };
}
