import { Problem } from "../base/problem.ts";
import type { PathParams, Route } from "./route.ts";

/** What stands at a path: the route of the method, and the methods that there are. */
export interface RouteMatch {
  readonly route: Route | undefined;
  readonly params: PathParams;
  /** Every method of the path, HEAD and OPTIONS among them; sent as Allow. */
  readonly methods: readonly string[];
  /** Any route of the path: says how the path's errors look, and whether it takes CORS. */
  readonly sibling: Route;
}

/** Finds routes; HEAD is found where GET is. */
export type Router = (method: string, path: string) => RouteMatch | undefined;

interface Place {
  readonly segments: readonly string[];
  readonly routes: Map<string, Route>;
  readonly sibling: Route;
  readonly methods: string[];
}

/**
 * Makes a router over literal paths and paths with `:name` segments, the first of which is literal;
 * literal ones win.
 */
export function createRouter(routes: readonly Route[]): Router {
  const literal = new Map<string, Place>();
  const patterns = new Map<string, Place>();
  for (const route of routes) {
    const places = route.path.includes("/:") ? patterns : literal;
    const place = places.get(route.path) ?? createPlace(route);
    place.routes.set(route.method, route);
    place.methods.splice(0, Infinity, ...methodsOf(place.routes));
    places.set(route.path, place);
  }
  const byFirst = Map.groupBy(patterns.values(), ({ segments }) => segments[1] ?? "");
  for (const places of byFirst.values()) {
    places.sort((one, other) => orderOf(one) < orderOf(other) ? -1 : 1);
  }

  return (method, path) => {
    const exact = literal.get(path);
    if (exact) return toMatch(exact, method, NO_PARAMS);
    const end = path.indexOf("/", 1);
    const places = end < 0 ? undefined : byFirst.get(path.slice(1, end));
    if (!places) return undefined;
    const segments = path.split("/");
    for (const place of places) {
      if (fits(place.segments, segments)) {
        return toMatch(place, method, readParams(place.segments, segments));
      }
    }
    return undefined;
  };
}

const NO_PARAMS: PathParams = Object.freeze({});

function createPlace(sibling: Route): Place {
  return { segments: sibling.path.split("/"), routes: new Map(), sibling, methods: [] };
}

function methodsOf(routes: ReadonlyMap<string, Route>): string[] {
  return [...routes.keys(), ...(routes.has("GET") ? ["HEAD"] : []), "OPTIONS"];
}

/** Sorts literal before parameter, segment by segment. */
function orderOf({ segments }: Place): string {
  return segments.map((part) => part.startsWith(":") ? "b" : "a").join("");
}

function toMatch(place: Place, method: string, params: PathParams): RouteMatch {
  const { routes, methods, sibling } = place;
  return { route: routes.get(method === "HEAD" ? "GET" : method), params, methods, sibling };
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.length === segments.length &&
    pattern.every((part, index) =>
      part.startsWith(":") ? segments[index] !== "" : part === segments[index]
    );
}

function readParams(pattern: readonly string[], segments: readonly string[]): PathParams {
  const params: Record<string, string> = {};
  pattern.forEach((part, index) => {
    if (part.startsWith(":")) params[part.slice(1)] = decodeSegment(segments[index] ?? "");
  });
  return params;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new Problem(400, "malformed", "The path is not well-formed.", { cause });
  }
}

const UNSAFE = /%2f|%5c|\\|(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|[^\x21-\x7e]/i;

/**
 * Throws Problem 400 for a path that a proxy or a file system might read in another way than we do:
 * dot segments, encoded slashes and backslashes, raw controls.
 */
export function checkPath(path: string): void {
  if (!path.startsWith("/") || UNSAFE.test(path)) {
    throw new Problem(400, "malformed", "The path is not well-formed.");
  }
}
