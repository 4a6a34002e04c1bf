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
}

/** Makes a router over literal paths and paths with `:name` segments; literal ones win. */
export function createRouter(routes: readonly Route[]): Router {
  const literal = new Map<string, Place>();
  const patterns = new Map<string, Place>();
  for (const route of routes) {
    const places = route.path.includes("/:") ? patterns : literal;
    const place = places.get(route.path) ??
      { segments: route.path.split("/"), routes: new Map<string, Route>() };
    place.routes.set(route.method, route);
    places.set(route.path, place);
  }
  const ordered = patterns.values().toArray()
    .sort((one, other) => orderOf(one) < orderOf(other) ? -1 : 1);

  return (method, path) => {
    const exact = literal.get(path);
    if (exact) return toMatch(exact, method, {});
    const segments = path.split("/");
    for (const place of ordered) {
      if (fits(place.segments, segments)) {
        return toMatch(place, method, readParams(place.segments, segments));
      }
    }
    return undefined;
  };
}

/** Sorts literal before parameter, segment by segment. */
function orderOf({ segments }: Place): string {
  return segments.map((part) => part.startsWith(":") ? "b" : "a").join("");
}

function toMatch({ routes }: Place, method: string, params: PathParams): RouteMatch | undefined {
  const [sibling] = routes.values();
  if (!sibling) return undefined;
  const route = routes.get(method === "HEAD" ? "GET" : method);
  const methods = [...routes.keys(), ...(routes.has("GET") ? ["HEAD"] : []), "OPTIONS"];
  return { route, params, methods, sibling };
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
