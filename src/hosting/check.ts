import { authored, readAs } from "../base/authored.ts";
import { parseDuration } from "../base/duration.ts";
import { isPlainObject } from "../base/plain_object.ts";
import type { FieldError } from "../base/problem.ts";
import { FLAG, type Infer, optional, reportTo, text, TEXT } from "../base/shape.ts";
import { OWN_PREFIX } from "../event/event.ts";
import { isScopeName, OWN_SCOPES } from "../oauth/scope.ts";
import type { CronjobContext } from "../mod.ts";
import { checkEndpoint, FUNCTION, type LoadedEndpoint, type Origin } from "./check_endpoint.ts";
import { declarations } from "./declarations.ts";

/** A cronjob as its module exports it, checked. */
export interface LoadedCronjob extends Origin {
  readonly name: string;
  readonly everyMs: number;
  run(context: CronjobContext): unknown;
}

/** One scope of a module's `scopes`, checked. */
export type LoadedScope = Origin & Infer<typeof SCOPES>[number];

/** What a folder of modules exports. */
export interface Hosted {
  readonly endpoints: LoadedEndpoint[];
  readonly cronjobs: LoadedCronjob[];
  readonly scopes: LoadedScope[];
  /** Exports that only look like an endpoint or a cronjob, and code files that are no modules. */
  readonly passedOver: (Pick<Origin, "file"> & Partial<Origin>)[];
}

const CRONJOB = authored({
  name: text((name) => {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) return "Must be 1 to 64 of A-Za-z0-9._-";
    return name.startsWith(OWN_PREFIX) ? "Is the service's own." : undefined;
  }),
  every: readAs((duration) => {
    const ms = parseDuration(duration) ?? 0;
    return ms >= 1_000 && ms <= 366 * 86_400_000 ? ms : undefined;
  }, 'a duration from "1s" to "366d", such as "5m"'),
  run: FUNCTION,
});

const SCOPES = declarations((name) => {
  if (!isScopeName(name)) return "Is not a scope's name.";
  return OWN_SCOPES.has(name) ? "Is the service's own." : undefined;
}, authored({ description: TEXT, grave: optional(FLAG, false) }));

/**
 * Adds an export to `hosted`, or returns every error that keeps the export from being served.
 * Undefined where the export is not meant to be served. A plain object is meant as an endpoint when
 * it has a method and a path, or one of them and a function `handle`. It is meant as a cronjob when
 * it has `every` and a name or a function `run`. Then a misspelt or missing field is an error.
 *
 * @param hooks those of the folders that the export is in
 */
export function checkExport(
  value: unknown,
  origin: Origin,
  hooks: Pick<LoadedEndpoint, "before" | "onError">,
  hosted: Hosted,
): readonly FieldError[] | undefined {
  if (!isPlainObject(value)) return undefined;
  const errors: FieldError[] = [];
  // Only these members are read: other objects may throw when they are read.
  const has = (name: string) => name in value && value[name] !== undefined;
  const placed = ["method", "path"].filter(has).length;
  if (placed === 2 || (placed === 1 && typeof value["handle"] === "function")) {
    const endpoint = checkEndpoint(value, origin, errors);
    const before = [...hooks.before, ...endpoint?.before ?? []];
    if (endpoint) hosted.endpoints.push({ ...endpoint, ...hooks, before });
  } else if (has("every") && (has("name") || typeof value["run"] === "function")) {
    const { every: everyMs, ...job } = CRONJOB.parse(value, reportTo(errors));
    if (errors.length === 0 && everyMs !== undefined && job.run) {
      hosted.cronjobs.push({ ...origin, name: job.name, everyMs, run: job.run.bind(value) });
    }
  } else if (origin.exportName === "scopes") {
    const scopes = SCOPES.parse(value, reportTo(errors)).map((scope) => ({ ...origin, ...scope }));
    if (errors.length === 0) hosted.scopes.push(...scopes);
  } else {
    return undefined;
  }
  return errors;
}
