import { parseDuration } from "../base/duration.ts";
import type { Shape } from "../base/shape.ts";
import type { CorsPolicy } from "../api/cors.ts";
import type { PathPattern } from "../api/path_pattern.ts";
import { type DeclaredEvent, OWN_PREFIX } from "../event/event.ts";
import { isScopeName, OWN_SCOPES, type ScopeWords } from "../oauth/scope.ts";
import type { Caller, Context, CronjobContext, Method, OnError } from "../mod.ts";
import { checkEndpoint } from "./check_endpoint.ts";
import {
  checkDeclaration,
  checkFields,
  checkFunction,
  isPlainObject,
  type Members,
} from "./check_fields.ts";
import type { RateLimit } from "../base/rate.ts";

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
  readonly summary: string | undefined;
  readonly input: LoadedInput;
  readonly output: Shape<unknown> | undefined;
  readonly takesForms: boolean;
  readonly emits: readonly DeclaredEvent[];
  readonly maxBodyBytes: number | undefined;
  readonly limit: RateLimit | undefined;
  readonly cors: CorsPolicy | undefined;
  /** Its folders' and its own, the outermost first. */
  readonly before: readonly ((context: AnyContext) => unknown)[];
  /** Its folders', the innermost first. */
  readonly onError: readonly OnError[];
  handle(context: AnyContext): unknown;
}

/** What a handler gets of any endpoint. */
export type AnyContext = Context<unknown, Caller | undefined>;

/**
 * The shapes of what an endpoint takes; a library's may return promises. Those of `params`, `query`
 * and `form` parse Texts.
 */
export interface LoadedInput {
  readonly params?: Shape<unknown> | undefined;
  readonly query?: Shape<unknown> | undefined;
  readonly body?: Shape<unknown> | undefined;
  /** The body's, for one that comes as a form. */
  readonly form?: Shape<unknown> | undefined;
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
  /** What looks like an endpoint or a cronjob and is none; a file by itself for its kind. */
  readonly passedOver: (Pick<Origin, "file"> & Partial<Origin>)[];
}

const CRONJOB_FIELDS = ["name", "every", "run"];
const SCOPE_FIELDS = ["description", "grave"];
const MIN_EVERY_MS = 1_000;
const MAX_EVERY_MS = 366 * 86_400_000;

/**
 * Adds one export to `hosted`, or returns every reason why it cannot be served; undefined where it
 * is not meant to be. A plain object is
 * meant to be an endpoint when it has a method and a path, or one of them and a function `handle`,
 * and a cronjob when it has `every` and a name or a function `run`: then a misspelt or missing
 * field is an error and not silently left out.
 *
 * @param hooks of the folders that it is in
 */
export function checkExport(
  value: unknown,
  origin: Origin,
  hooks: Pick<LoadedEndpoint, "before" | "onError">,
  hosted: Hosted,
): readonly string[] | undefined {
  if (!isPlainObject(value)) return undefined;
  const reasons: string[] = [];
  const { method, path, handle, name, every, run } = value;
  const placed = [method, path].filter((field) => field !== undefined).length;
  if (placed === 2 || (placed === 1 && typeof handle === "function")) {
    const [endpoint] = checkEndpoint(value, origin, reasons);
    const before = [...hooks.before, ...endpoint?.before ?? []];
    if (endpoint) hosted.endpoints.push({ ...endpoint, ...hooks, before });
  } else if (every !== undefined && (name !== undefined || typeof run === "function")) {
    hosted.cronjobs.push(...checkCronjob(value, origin, reasons));
  } else if (origin.exportName === "scopes") {
    hosted.scopes.push(...checkScopeWords(value, origin, reasons));
  } else {
    return undefined;
  }
  return reasons;
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
