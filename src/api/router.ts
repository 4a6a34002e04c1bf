import { METHODS } from "../base/http_message.ts";
import { malformed } from "../base/problem.ts";
import type { Operation, PathParams } from "./operation.ts";
import {
  comparePatterns,
  parsePathPattern,
  type PathPattern,
  withUpperEscapes,
} from "./path_pattern.ts";

/** What is at a path. */
export interface RouteMatch {
  readonly operation: Operation | undefined;
  /** Percent-decoded; without a prototype, so that nothing else is in it. */
  readonly params: PathParams;
  /** For Allow: without an operation, the methods of the path, HEAD and OPTIONS included. */
  readonly methods: readonly string[];
  /** The operation, else any operation of the path; decides the form of errors, and CORS. */
  readonly sibling: Operation;
}

/**
 * Finds the operation of a method and a path, as `checkPath` returns paths. HEAD finds that of GET.
 * Throws Problem 400 `malformed` when a parameter's percent-encoding is broken.
 */
export type Router = (method: string, path: string) => RouteMatch | undefined;

interface Entry {
  readonly operation: Operation;
  readonly pattern: PathPattern;
  /** Its place in the order of all patterns: the lower goes first. */
  readonly place: number;
}

/** A tree of patterns by segment: a literal is looked up, a parameter matches any segment. */
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
 * Makes a router of operations; no two may have the same method and shape. Paths match as in
 * URLPattern: percent-encoded, case-sensitive, and a parameter matches one non-empty segment. Of
 * several matches the most literal one counts, segment by segment.
 *
 * Literals and `:parameters` cost one look-up per segment; any other pattern costs a URLPattern.
 */
export function createRouter(operations: readonly Operation[]): Router {
  const tree = createNode();
  const complexEntries: Entry[] = [];
  const ordered = operations.map((operation) => {
    const reasons: string[] = [];
    const pattern = parsePathPattern(operation.path, (reason) => reasons.push(reason));
    if (!pattern) throw new Error(`${operation.path}: ${reasons.join()}`);
    return { operation, pattern };
  }).sort((a, b) => comparePatterns(a.pattern, b.pattern));
  for (const [place, { operation, pattern }] of ordered.entries()) {
    const { segments: [first], urlPattern } = pattern;
    const entry = { operation, pattern, place };
    // A complex pattern adds only its first segment, which marks paths as this router's.
    if (first?.rank === 0) tree.literals.getOrInsertComputed(first.literal, createNode);
    if (urlPattern) complexEntries.push(entry);
    else insertEntry(tree, entry);
  }

  // If false, the look-up of another router's path ends early.
  const takesAnyFirst = tree.parameter !== undefined ||
    complexEntries.some(({ pattern: { segments: [first] } }) => first?.rank !== 0);

  /** Returns the first match in the order of patterns. */
  const find = (method: string, path: string) => {
    const simple = findEntry(tree, path, 1, method);
    for (const entry of complexEntries) {
      if (simple !== undefined && simple.place < entry.place) break;
      if (entry.operation.method !== method) continue;
      const params = readGroups(entry, path);
      if (params !== undefined) return { operation: entry.operation, params };
    }
    return simple && { operation: simple.operation, params: readSegments(simple, path) };
  };

  return (method, path) => {
    if (!takesAnyFirst && !tree.literals.has(segmentAt(path, 1))) return undefined;
    const found = find(method === "HEAD" ? "GET" : method, path);
    if (found) return { ...found, methods: NO_METHODS, sibling: found.operation };
    const others = METHODS.flatMap((other) => find(other, path)?.operation ?? []);
    const [sibling] = others;
    if (!sibling) return undefined;
    const methods = others.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : method);
    return { operation: undefined, params: NO_PARAMS, methods: [...methods, "OPTIONS"], sibling };
  };
}

function endOfSegment(path: string, start: number): number {
  const end = path.indexOf("/", start);
  return end < 0 ? path.length : end;
}

function segmentAt(path: string, start: number): string {
  return path.slice(start, endOfSegment(path, start));
}

function createNode(): TreeNode {
  return { literals: new Map(), parameter: undefined, entries: new Map() };
}

function insertEntry(root: TreeNode, entry: Entry): void {
  let node = root;
  for (const { rank, literal } of entry.pattern.segments) {
    node = rank === 0
      ? node.literals.getOrInsertComputed(literal, createNode)
      : node.parameter ??= createNode();
  }
  node.entries.set(entry.operation.method, entry);
}

/** Returns the first match: at each segment it tries the literal branch, then the parameter's. */
function findEntry(node: TreeNode, path: string, start: number, method: string): Entry | undefined {
  if (start > path.length) return node.entries.get(method);
  const segment = segmentAt(path, start);
  const rest = start + segment.length + 1;
  const next = node.literals.get(segment);
  const found = next && findEntry(next, path, rest, method);
  if (found !== undefined || node.parameter === undefined || segment === "") return found;
  return findEntry(node.parameter, path, rest, method);
}

function readSegments({ pattern }: Entry, path: string): PathParams {
  const params: Record<string, string> = Object.create(null);
  let start = 1;
  for (const { name } of pattern.segments) {
    const end = endOfSegment(path, start);
    if (name !== "") params[name] = decode(path.slice(start, end));
    start = end + 1;
  }
  return params;
}

function readGroups(
  { pattern: { segments: [first], urlPattern } }: Entry,
  path: string,
): PathParams | undefined {
  // This avoids running most URLPatterns, which cost some microseconds each.
  if (first?.rank === 0 && first.literal !== segmentAt(path, 1)) return undefined;
  const result = urlPattern?.exec({ pathname: path });
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

const UNSAFE = /%2f|%5c|\\|(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|[^\x21-\x7e]/i;
/** A character that URLPattern percent-encodes in a path. */
const UNENCODED = /[^\w\-.~!$&'()*+,;=:@%|/]/;

/**
 * Returns the path as URLPattern sees it: quotes and the like percent-encoded. Throws Problem 400
 * for a path that a proxy or a file system might read differently: dot segments, encoded slashes
 * and backslashes, raw control characters.
 */
export function checkPath(path: string): string {
  if (!path.startsWith("/") || UNSAFE.test(path)) throw malformed("The path is not well-formed.");
  const found = UNENCODED.test(path) ? ANY_PATH.exec({ pathname: path }) : undefined;
  return withUpperEscapes(found?.pathname.groups["0"] ?? path);
}
