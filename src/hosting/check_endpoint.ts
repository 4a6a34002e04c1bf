import { parseSize } from "../base/duration.ts";
import { METHODS } from "../base/http_message.ts";
import { parsePathPattern, type PathPattern } from "../api/path_pattern.ts";
import { checkDispatchableName, type DeclaredEvent } from "../event/event.ts";
import type { LoadedEndpoint, Origin } from "./check.ts";
import {
  checkDeclaration,
  checkFields,
  checkFunction,
  checkScopes,
  isPlainObject,
  type Members,
} from "./check_fields.ts";
import { checkCors, checkLimit } from "./check_policy.ts";
import { checkExample, checkInput, checkSchema } from "./check_schemas.ts";

/** First segments that are the service's own. */
const RESERVED_SEGMENTS = [
  "authorization", "consumer", "backend", "system", "console", ".well-known", "openapi.json",
  "asyncapi.json",
];

/** The fields of an endpoint. */
const ENDPOINT_FIELDS = [
  "method", "path", "scope", "public", "summary", "input", "output", "accepts", "emits", "maxBody",
  "before", "limit", "cors", "handle",
];
const EVENT_FIELDS = ["description", "scope", "schema", "example"];
const ACCEPTED = ["json", "form"];

/** The endpoint, or nothing and why in `reasons`; those below likewise. */
export function checkEndpoint(value: Members, origin: Origin, reasons: string[]): LoadedEndpoint[] {
  checkFields(value, ENDPOINT_FIELDS, "an endpoint", reasons);
  const method = METHODS.find((name) => name === value["method"]);
  if (method === undefined) reasons.push(`method must be one of ${METHODS.join(", ")}`);
  const pattern = checkPath(value["path"], reasons);
  const scopes = checkAccess(value, reasons);
  const emits = checkEmits(value["emits"], reasons);
  const maxBodyBytes = checkMaxBody(value["maxBody"], reasons);
  const summary = checkSummary(value["summary"], reasons);
  const input = checkInput(value["input"], method, pattern, reasons);
  const output = checkSchema(value["output"], "output", "output", reasons);
  const takesForms = checkAccepts(value["accepts"], reasons);
  const limit = checkLimit(value["limit"], scopes, reasons);
  const cors = checkCors(value["cors"], reasons);
  const before = "before" in value ? checkFunction(value, "before", reasons) : undefined;
  const handle = checkFunction(value, "handle", reasons);
  if (reasons.length > 0 || !method || !pattern || !handle) return [];
  return [{
    ...origin, method, pattern, scopes, emits, maxBodyBytes, summary, input, output, takesForms,
    limit, cors, before: before ? [before] : [], onError: [], handle,
  }];
}

function checkPath(path: unknown, reasons: string[]): PathPattern | undefined {
  if (typeof path !== "string") {
    reasons.push('path must be a string, such as "/orders/:id"');
    return undefined;
  }
  const pattern = parsePathPattern(path, reasons);
  const first = pattern?.segments[0];
  if (first?.rank === 0 && RESERVED_SEGMENTS.includes(first.literal)) {
    reasons.push(`path "${path}" is the service's own: "/${first.literal}" is reserved`);
    return undefined;
  }
  return pattern;
}

/** The scopes a token needs; undefined when it needs no token, or after an error. */
function checkAccess(value: Members, reasons: string[]): readonly string[] | undefined {
  const { scope } = value;
  const isPublic = value["public"];
  if (isPublic !== undefined && isPublic !== true) reasons.push("public must be true when given");
  if (scope === undefined) {
    if (isPublic === undefined) {
      reasons.push("scope is missing: name one or several, [] for any valid token, " +
        "or public: true for none");
    }
    return undefined;
  }
  if (isPublic !== undefined) reasons.push("scope and public exclude each other");
  return checkScopes(scope, "scope", reasons);
}

function checkEmits(value: unknown, reasons: string[]): readonly DeclaredEvent[] {
  if (value === undefined) return [];
  if (!isPlainObject(value)) {
    reasons.push('emits must be an object, such as { "order.created": "An order was placed" }');
    return [];
  }
  return Object.entries(value).map(([name, declared]) => checkEvent(name, declared, reasons));
}

function checkEvent(name: string, declared: unknown, reasons: string[]): DeclaredEvent {
  const where = `emits["${name}"]`;
  const wrong = checkDispatchableName(name);
  if (wrong !== undefined) reasons.push(`${where}: ${wrong}`);
  const members = checkDeclaration(declared, where, EVENT_FIELDS, reasons);
  const { description, scope, schema, example } = members;
  const scopes = scope === undefined ? [] : checkScopes(scope, `${where}.scope`, reasons);
  const data = checkSchema(schema, `${where}.schema`, "output", reasons);
  checkExample(example, data, `${where}.example`, reasons);
  return { name, description: String(description), scope: scopes, data, example };
}

function checkMaxBody(value: unknown, reasons: string[]): number | undefined {
  if (value === undefined) return undefined;
  const bytes = typeof value === "string" ? parseSize(value) : undefined;
  if (bytes === undefined || bytes === 0) reasons.push('maxBody must be a size, such as "64KiB"');
  return bytes;
}

function checkSummary(value: unknown, reasons: string[]): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value === "") reasons.push("summary must be a line of text");
  return String(value);
}

/** Whether forms are taken. */
function checkAccepts(value: unknown, reasons: string[]): boolean {
  if (value === undefined) return false;
  const kinds: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (!Array.isArray(value) || kinds.some((kind) => !ACCEPTED.includes(String(kind)))) {
    reasons.push('accepts must be a list of "json" and "form"');
  }
  return kinds.includes("form");
}
