import { Problem } from "../base/problem.ts";
import type { Method } from "../mod.ts";
import { comparePatterns, type PathPattern } from "./path_pattern.ts";

/** What the matcher needs to know of an endpoint. */
export interface Matchable {
  readonly method: string;
  readonly pattern: PathPattern;
}

/** What a method and path lead to. */
export type Match<E> =
  | { readonly kind: "found"; readonly endpoint: E; readonly params: Params }
  /** The path is there, the method is not; `allowed` is what Allow says, HEAD and OPTIONS too. */
  | { readonly kind: "other_methods"; readonly allowed: readonly string[]; readonly sibling: E }
  | { readonly kind: "none" };

/** Parameters by name, percent-decoded; without a prototype, so that nothing else is in it. */
export type Params = Readonly<Record<string, string>>;

/** Finds the endpoint for a method and a path as HttpRequest has it. */
export type Matcher<E> = (method: string, path: string) => Match<E>;

interface Route<E> {
  readonly endpoint: E;
  readonly pattern: PathPattern;
  /** Its place among all: the lower the sooner. */
  readonly place: number;
  /** The parameters' names from left to right; of literal and parameter segments alone. */
  readonly names: readonly string[];
}

/** Simple patterns by segment: a literal is looked up, a parameter takes any. */
interface TreeNode<E> {
  readonly literals: Map<string, TreeNode<E>>;
  parameter: TreeNode<E> | undefined;
  readonly routes: Map<string, Route<E>>;
}

interface Found<E> {
  readonly route: Route<E>;
  readonly params: Params;
}

/** Methods that an endpoint may have; HEAD and OPTIONS are made by the service. */
export const METHODS: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Characters that URLPattern leaves alone in a path; dot segments aside. */
const PLAIN_PATH = /^(?:\/(?!(?:\.|%2e){1,2}(?:\/|$))[\w\-.~!$&'()*+,;=:@%|]*)+$/i;
const ANY_PATH = new URLPattern({ pathname: "*" });
const NO_PARAMS: Params = Object.freeze(noParams());

/**
 * Returns a matcher for `endpoints`, of which no two may have one method and shape. Paths match as
 * URLPattern has it: percent-encoded, by case, and a parameter takes one segment that is not empty.
 * Of several the most literal one counts, segment by segment. HEAD is matched as GET.
 *
 * Literal paths take one look-up, patterns of literals and `:parameters` one per segment; only what
 * is fancier costs a URLPattern each.
 *
 * @throws {Problem} (the matcher) 400 `malformed` when a parameter's percent-encoding is broken
 */
export function createMatcher<E extends Matchable>(endpoints: readonly E[]): Matcher<E> {
  const literals = new Map<string, Map<string, Route<E>>>();
  const tree = createNode<E>();
  const fancy: Route<E>[] = [];
  const ordered = endpoints.toSorted((a, b) => comparePatterns(a.pattern, b.pattern));
  for (const [place, endpoint] of ordered.entries()) {
    const { segments } = endpoint.pattern;
    const names = segments.filter(({ rank }) => rank === 2).map(({ name }) => name);
    const route = { endpoint, pattern: endpoint.pattern, place, names };
    if (segments.every(({ rank }) => rank === 0)) {
      const path = `/${segments.map(({ literal }) => literal).join("/")}`;
      addTo(literals, path, () => new Map<string, Route<E>>()).set(endpoint.method, route);
    } else if (segments.every(({ rank }) => rank === 0 || rank === 2)) {
      plant(tree, route);
    } else fancy.push(route);
  }

  const find = (method: string, path: string): Found<E> | undefined => {
    const literal = literals.get(path)?.get(method);
    if (literal !== undefined) return { route: literal, params: NO_PARAMS };
    const segments = path.slice(1).split("/");
    const simple = climb(tree, segments, 0, method);
    for (const route of fancy) {
      if (simple !== undefined && simple.place < route.place) break;
      if (route.endpoint.method !== method || !mayMatch(route, segments)) continue;
      const params = readGroups(route, path);
      if (params !== undefined) return { route, params };
    }
    return simple === undefined
      ? undefined
      : { route: simple, params: readSegments(simple, segments) };
  };

  return (method, rawPath) => {
    const path = PLAIN_PATH.test(rawPath) ? rawPath : canonicalPath(rawPath);
    const found = find(method === "HEAD" ? "GET" : method, path);
    if (found !== undefined) {
      return { kind: "found", endpoint: found.route.endpoint, params: found.params };
    }
    const others = METHODS.map((other) => find(other, path)?.route.endpoint)
      .filter((endpoint) => endpoint !== undefined);
    const [sibling] = others;
    if (sibling === undefined) return { kind: "none" };
    const methods = others.map((other) => other.method === "GET" ? ["GET", "HEAD"] : other.method);
    return { kind: "other_methods", allowed: [...methods.flat(), "OPTIONS"], sibling };
  };
}

function createNode<E>(): TreeNode<E> {
  return { literals: new Map(), parameter: undefined, routes: new Map() };
}

function plant<E extends Matchable>(root: TreeNode<E>, route: Route<E>): void {
  let node = root;
  for (const { rank, literal } of route.pattern.segments) {
    if (rank === 0) node = addTo(node.literals, literal, createNode<E>);
    else node = node.parameter ??= createNode<E>();
  }
  node.routes.set(route.endpoint.method, route);
}

/** The first route in order: at each segment the literal's branch before the parameter's. */
function climb<E>(
  node: TreeNode<E>,
  segments: readonly string[],
  index: number,
  method: string,
): Route<E> | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.routes.get(method);
  const next = node.literals.get(segment);
  const found = next && climb(next, segments, index + 1, method);
  if (found !== undefined || node.parameter === undefined || segment === "") return found;
  return climb(node.parameter, segments, index + 1, method);
}

/** Spares most URLPatterns, which cost some microseconds each. */
function mayMatch<E>({ pattern: { segments: [first] } }: Route<E>, segments: string[]): boolean {
  return first?.rank !== 0 || first.literal === segments[0];
}

function readSegments<E>({ pattern, names }: Route<E>, segments: readonly string[]): Params {
  const params = noParams();
  let next = 0;
  for (const [index, segment] of segments.entries()) {
    const name = pattern.segments[index]?.rank === 2 ? names[next++] : undefined;
    if (name !== undefined) params[name] = decode(segment);
  }
  return params;
}

function readGroups<E>({ pattern }: Route<E>, path: string): Params | undefined {
  const result = pattern.urlPattern.exec({ pathname: path });
  if (result === null || result === undefined) return undefined;
  const params = noParams();
  for (const [name, value] of Object.entries(result.pathname.groups)) {
    if (value !== undefined) params[name] = decode(value);
  }
  return params;
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Problem(400, "malformed", "The path is not valid percent-encoded UTF-8.");
  }
}

/** The path as URLPattern sees it: spaces, quotes and the like percent-encoded. */
function canonicalPath(path: string): string {
  return ANY_PATH.exec({ pathname: path })?.pathname.groups["0"] ?? path;
}

function noParams(): Record<string, string> {
  return Object.create(null) as Record<string, string>;
}

function addTo<V>(map: Map<string, V>, key: string, create: () => V): V {
  const value = map.get(key) ?? create();
  map.set(key, value);
  return value;
}
