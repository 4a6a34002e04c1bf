import { parseDuration, parseSize } from "../base/duration.ts";
import { METHODS } from "../base/http_message.ts";
import { parsePathPattern, type PathPattern } from "../api/path_pattern.ts";
import { checkDispatchableName, type DeclaredEvent, OWN_PREFIX } from "../event/event.ts";
import { isScopeName, OWN_SCOPES, type ScopeWords } from "../oauth/scope.ts";
import type { Caller, Context, CronjobContext, Method } from "../mod.ts";

/** First segments that are the service's own. */
const RESERVED_SEGMENTS = [
  "authorization", "consumer", "backend", "system", "console", ".well-known", "openapi.json",
];

/** Where in the folder something was exported. */
export interface Origin {
  readonly file: string;
  readonly exportName: string;
}

/** An endpoint as its module exports it, checked. */
export interface LoadedEndpoint extends Origin {
  readonly method: Method;
  readonly pattern: PathPattern;
  /** All that a token must carry; undefined on a public endpoint. */
  readonly scopes: readonly string[] | undefined;
  readonly emits: readonly DeclaredEvent[];
  readonly maxBodyBytes: number | undefined;
  handle(context: Context<unknown, Caller | undefined>): unknown;
}

/** A cronjob as its module exports it, checked. */
export interface LoadedCronjob extends Origin {
  readonly name: string;
  readonly everyMs: number;
  run(context: CronjobContext): unknown;
}

/** One scope of a module's `scopes`, checked. */
export interface LoadedScope extends Origin, ScopeWords {
  readonly name: string;
}

/** What a folder of modules exports. */
export interface Hosted {
  readonly endpoints: LoadedEndpoint[];
  readonly cronjobs: LoadedCronjob[];
  readonly scopes: LoadedScope[];
}

/** What an object literal or a module has. */
export type Members = Readonly<Record<string, unknown>>;

const ENDPOINT_FIELDS = ["method", "path", "scope", "public", "emits", "maxBody", "handle"];
const CRONJOB_FIELDS = ["name", "every", "run"];
const EVENT_FIELDS = ["description", "scope"];
const SCOPE_FIELDS = ["description", "grave"];
const MIN_EVERY_MS = 1_000;
const MAX_EVERY_MS = 366 * 86_400_000;

/**
 * Adds one export to `hosted`, or returns every reason why it cannot be served. A plain object is
 * meant to be an endpoint when it has `handle`, or any two of an endpoint's other fields, and
 * a cronjob when it has any two of a cronjob's: one with a misspelt or missing field is an error
 * and not silently left out.
 */
export function checkExport(value: unknown, origin: Origin, hosted: Hosted): readonly string[] {
  const reasons: string[] = [];
  if (!isPlainObject(value)) return reasons;
  const countOf = (names: readonly string[]) =>
    names.filter((name) => value[name] !== undefined).length;
  if (value["handle"] !== undefined || countOf(ENDPOINT_FIELDS) > 1) {
    hosted.endpoints.push(...checkEndpoint(value, origin, reasons));
  } else if (countOf(CRONJOB_FIELDS) > 1) {
    hosted.cronjobs.push(...checkCronjob(value, origin, reasons));
  } else if (origin.exportName === "scopes") {
    hosted.scopes.push(...checkScopeWords(value, origin, reasons));
  }
  return reasons;
}

/** The endpoint, or nothing and why in `reasons`; those below likewise. */
function checkEndpoint(value: Members, origin: Origin, reasons: string[]): LoadedEndpoint[] {
  checkFields(value, ENDPOINT_FIELDS, "an endpoint", reasons);
  const method = METHODS.find((name) => name === value["method"]);
  if (method === undefined) reasons.push(`method must be one of ${METHODS.join(", ")}`);
  const pattern = checkPath(value["path"], reasons);
  const scopes = checkAccess(value, reasons);
  const emits = checkEmits(value["emits"], reasons);
  const maxBodyBytes = checkMaxBody(value["maxBody"], reasons);
  const handle = checkFunction(value, "handle", reasons);
  if (reasons.length > 0 || !method || !pattern || !handle) return [];
  return [{ ...origin, method, pattern, scopes, emits, maxBodyBytes, handle }];
}

function checkCronjob(value: Members, origin: Origin, reasons: string[]): LoadedCronjob[] {
  checkFields(value, CRONJOB_FIELDS, "a cronjob", reasons);
  const { name, every } = value;
  const isName = typeof name === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(name);
  if (!isName) reasons.push("name must be 1 to 64 of A-Za-z0-9._-");
  else if (name.startsWith(OWN_PREFIX)) reasons.push(`name "${name}" is the service's own`);
  const everyMs = typeof every === "string" ? parseDuration(every) : undefined;
  if (everyMs === undefined || everyMs < MIN_EVERY_MS || everyMs > MAX_EVERY_MS) {
    reasons.push('every must be a duration from "1s" to "366d", such as "5m"');
  }
  const run = checkFunction(value, "run", reasons);
  if (reasons.length > 0 || !isName || everyMs === undefined || !run) return [];
  return [{ ...origin, name, everyMs, run }];
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

function checkScopes(value: unknown, where: string, reasons: string[]): readonly string[] {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const scopes = names.filter((name) => typeof name === "string" && isScopeName(name));
  if (scopes.length < names.length) {
    // An empty string does not mean "any token": it may be a variable that was not set.
    reasons.push(`${where} must be a scope's name or a list of them, each 1 to 64 characters ` +
      "without space and comma");
  }
  return [...new Set(scopes.map(String))];
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
  const { description, scope } = checkDeclaration(declared, where, EVENT_FIELDS, reasons);
  const scopes = scope === undefined ? [] : checkScopes(scope, `${where}.scope`, reasons);
  return { name, description: String(description), scope: scopes };
}

function checkScopeWords(value: Members, origin: Origin, reasons: string[]): LoadedScope[] {
  const scopes = Object.entries(value).map(([name, declared]) => {
    const where = `scopes["${name}"]`;
    if (!isScopeName(name)) reasons.push(`${where} is not a scope's name`);
    if (OWN_SCOPES.has(name)) reasons.push(`${where} is the service's own`);
    const { description, grave = false } = checkDeclaration(declared, where, SCOPE_FIELDS, reasons);
    if (typeof grave !== "boolean") reasons.push(`${where}.grave must be true or false`);
    return { ...origin, name, description: String(description), grave: grave === true };
  });
  return reasons.length > 0 ? [] : scopes;
}

/** The members of what may be a description alone, or one in an object with more. */
function checkDeclaration(
  declared: unknown,
  where: string,
  fields: readonly string[],
  reasons: string[],
): Members {
  const members = isPlainObject(declared) ? declared : { description: declared };
  if (typeof members["description"] !== "string") {
    reasons.push(`${where} must be a description or { ${fields.join(", ")}? }`);
  }
  checkFields(members, fields, where, reasons);
  return members;
}

function checkMaxBody(value: unknown, reasons: string[]): number | undefined {
  if (value === undefined) return undefined;
  const bytes = typeof value === "string" ? parseSize(value) : undefined;
  if (bytes === undefined || bytes === 0) reasons.push('maxBody must be a size, such as "64KiB"');
  return bytes;
}

/** The function at `name`, to be called as its object's method. */
function checkFunction(
  value: Members,
  name: string,
  reasons: string[],
): ((context: unknown) => unknown) | undefined {
  const found = value[name];
  if (typeof found === "function") return found.bind(value);
  reasons.push(`${name} must be a function`);
  return undefined;
}

function checkFields(
  value: Members,
  known: readonly string[],
  what: string,
  reasons: string[],
): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) reasons.push(`"${name}" is not a field of ${what}`);
  }
}

/** Tells whether `value` is an object literal: not of a class, not an array, not a function. */
export function isPlainObject(value: unknown): value is Members {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
