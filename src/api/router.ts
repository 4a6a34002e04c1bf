import { METHODS } from "../base/http_message.ts";
import { malformed } from "../base/problem.ts";
import type { Operation, PathParams } from "./operation.ts";
import { comparePatterns, parsePathPattern, type PathPattern } from "./path_pattern.ts";

/** What is at a path. */
export interface RouteMatch {
  readonly operation: Operation | undefined;
  /** Percent-decoded; without a prototype, so that nothing else is in it. */
  readonly params: PathParams;
  /** Where there is no operation: the methods that have one, HEAD and OPTIONS too; for Allow. */
  readonly methods: readonly string[];
  /** The operation, else any of the path: says how its errors look, and whether it takes CORS. */
  readonly sibling: Operation;
}

/**
 * Finds the operation of a method and a path, as `checkPath` returns it; HEAD is found where GET
 * is. Throws Problem 400 `malformed` when a parameter's percent-encoding is broken.
 */
export type Router = (method: string, path: string) => RouteMatch | undefined;

interface Entry {
  readonly operation: Operation;
  readonly pattern: PathPattern;
  /** Its place among all: the lower goes first. */
  readonly place: number;
}

/** Patterns of literals and parameters by segment: a literal is looked up, a parameter is any. */
interface TreeNode {
  readonly literals: Map<string, TreeNode>;
  parameter: TreeNode | undefined;
  /** By method. */
  readonly entries: Map<string, Entry>;
}

const ANY_PATH = new URLPattern({ pathname: "*" });
const NO_PARAMS: PathParams = Object.freeze(Object.create(null));
const NO_METHODS: readonly string[] = [];

/**
 * Makes a router of operations of which no two may have one method and shape. Paths match as
 * URLPattern has it: percent-encoded, by case, and a parameter takes one segment that is not empty.
 * Of several the most literal one counts, segment by segment.
 *
 * Literals and `:parameters` cost one look-up per segment; only what is fancier costs a URLPattern
 * each.
 */
export function createRouter(operations: readonly Operation[]): Router {
  const tree = createNode();
  const fancy: Entry[] = [];
  const ordered = operations.map((operation) => {
    const reasons: string[] = [];
    const pattern = parsePathPattern(operation.path, (reason) => reasons.push(reason));
    if (!pattern) throw new Error(`${operation.path}: ${reasons.join()}`);
    return { operation, pattern };
  }).sort((a, b) => comparePatterns(a.pattern, b.pattern));
  for (const [place, { operation, pattern }] of ordered.entries()) {
    const { segments } = pattern;
    const entry = { operation, pattern, place };
    const [first] = segments;
    // Of one that is fancy only the beginning, by which its paths are known as this router's.
    if (first?.rank === 0) tree.literals.getOrInsertComputed(first.literal, createNode);
    if (segments.some(({ rank }) => rank === 1 || rank === 3)) fancy.push(entry);
    else plant(tree, entry);
  }

  // Paths of another router end early.
  const takesAnyFirst = tree.parameter !== undefined ||
    fancy.some(({ pattern: { segments: [first] } }) => first?.rank !== 0);

  /** The first entry in order. */
  const find = (method: string, path: string, segments: readonly string[]) => {
    const simple = climb(tree, segments, 0, method);
    for (const entry of fancy) {
      if (simple !== undefined && simple.place < entry.place) break;
      if (entry.operation.method !== method) continue;
      const params = readGroups(entry, path, segments);
      if (params !== undefined) return { operation: entry.operation, params };
    }
    return simple && { operation: simple.operation, params: readSegments(simple, segments) };
  };

  return (method, path) => {
    const segments = path.slice(1).split("/");
    if (!takesAnyFirst && !tree.literals.has(segments[0] ?? "")) return undefined;
    const found = find(method === "HEAD" ? "GET" : method, path, segments);
    if (found) return { ...found, methods: NO_METHODS, sibling: found.operation };
    const others = METHODS.flatMap((other) => find(other, path, segments)?.operation ?? []);
    const [sibling] = others;
    if (!sibling) return undefined;
    const methods = others.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : method);
    return { operation: undefined, params: NO_PARAMS, methods: [...methods, "OPTIONS"], sibling };
  };
}

function createNode(): TreeNode {
  return { literals: new Map(), parameter: undefined, entries: new Map() };
}

function plant(root: TreeNode, entry: Entry): void {
  let node = root;
  for (const { rank, literal } of entry.pattern.segments) {
    node = rank === 0
      ? node.literals.getOrInsertComputed(literal, createNode)
      : node.parameter ??= createNode();
  }
  node.entries.set(entry.operation.method, entry);
}

/** The first entry in order: at each segment the literal's branch before the parameter's. */
function climb(
  node: TreeNode,
  segments: readonly string[],
  index: number,
  method: string,
): Entry | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.entries.get(method);
  const next = node.literals.get(segment);
  const found = next && climb(next, segments, index + 1, method);
  if (found !== undefined || node.parameter === undefined || segment === "") return found;
  return climb(node.parameter, segments, index + 1, method);
}

function readSegments({ pattern }: Entry, segments: readonly string[]): PathParams {
  const params: Record<string, string> = Object.create(null);
  for (let index = 0; index < segments.length; index++) {
    const name = pattern.segments[index]?.name;
    if (name) params[name] = decode(segments[index] ?? "");
  }
  return params;
}

function readGroups(
  { pattern: { segments: [first], urlPattern } }: Entry,
  path: string,
  segments: readonly string[],
): PathParams | undefined {
  // This spares most URLPatterns, which cost some microseconds each.
  if (first?.rank === 0 && first.literal !== segments[0]) return undefined;
  const result = urlPattern.exec({ pathname: path });
  if (!result) return undefined;
  const params: Record<string, string> = Object.create(null);
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
    throw malformed("The path is not well-formed.");
  }
}

/** Nearly every path: no dot segments, and nothing that is or has to be percent-encoded. */
const PLAIN = /^(?:\/(?!\.\.?(?:\/|$))[\w\-.~!$&'()*+,;=:@|]*)+$/;
const UNSAFE = /%2f|%5c|\\|(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|[^\x21-\x7e]/i;

/**
 * The path as URLPattern sees it: quotes and the like percent-encoded. Throws Problem 400 for one
 * that a proxy or a file system might read in another way than we do: dot segments, encoded slashes
 * and backslashes, raw controls.
 */
export function checkPath(path: string): string {
  if (PLAIN.test(path)) return path;
  if (!path.startsWith("/") || UNSAFE.test(path)) throw malformed("The path is not well-formed.");
  return ANY_PATH.exec({ pathname: path })?.pathname.groups["0"] ?? path;
}
