import type { Report } from "../base/shape.ts";

/** One segment of a path pattern, the text between two slashes. */
interface Segment {
  /**
   * Lower ranks go first. 0: a literal. 1: a parameter that matches only some texts (`:id.json`,
   * `:id(\\d+)`). 2: a parameter. 3: a wildcard, or anything optional or repeated.
   */
  readonly rank: 0 | 1 | 2 | 3;
  /** Its literal characters: the whole segment if the rank is 0. */
  readonly literal: string;
  /** The parameter's name if the rank is 2, else "". */
  readonly name: string;
}

/** A parsed URLPattern pathname that a route may have. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly Segment[];
  /** The pattern without parameter names. Patterns of the same shape match the same paths. */
  readonly shape: string;
  /** Set if a segment has rank 1 or 3: `segments` alone cannot match such a pattern. */
  readonly urlPattern: URLPattern | undefined;
}

/**
 * One token of a URLPattern pathname. Its only member is its kind: `name`, a parameter's without
 * the colon; `regexp`, a group's with its parentheses; `mark`, one of `* ? + { }`; or `literal`, a
 * word or any other character, without a backslash before it.
 */
type PathToken = { readonly [Kind in "name" | "regexp" | "mark" | "literal"]?: string };

const TOKEN = new RegExp(
  [
    String.raw`\\(?<literal>.)`,
    String.raw`:(?<name>[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)`,
    String.raw`(?<mark>[*?+{}])`,
    String.raw`(?<literal>\w+|.)`,
  ].join("|"),
  "suy",
);

/** Splits a URLPattern pathname into tokens (URL Pattern Standard, 2.1.1 "Tokens"). */
export function* tokensOf(pathname: string): Generator<PathToken, void, void> {
  for (let index = 0; index < pathname.length;) {
    if (pathname[index] === "(") {
      const end = endOfGroup(pathname, index);
      yield { regexp: pathname.slice(index, end) };
      index = end;
    } else {
      TOKEN.lastIndex = index;
      const { 0: text = " ", groups = {} } = TOKEN.exec(pathname) ?? {};
      yield groups;
      index += text.length;
    }
  }
}

/** Returns where the group that opens at `start` ends; non-capturing groups may nest in it. */
function endOfGroup(pathname: string, start: number): number {
  let depth = 0;
  for (let index = start; index < pathname.length; index++) {
    const character = pathname[index];
    if (character === "\\") index++;
    else if (character === "(") depth++;
    else if (character === ")" && --depth === 0) return index + 1;
  }
  return pathname.length;
}

/** The cache of parsed patterns: a path occurs once per method, and in several routers. */
const parsed = new Map<string, PathPattern>();

/** Returns the pattern of `path`, or reports why a route cannot have it. */
export function parsePathPattern(path: string, report: Report): PathPattern | undefined {
  let wrong = whyNoRoute(path);
  try {
    if (wrong === undefined) return parsed.getOrInsertComputed(path, toPattern);
  } catch {
    wrong = "Is not a valid URLPattern pathname.";
  }
  report(wrong);
  return undefined;
}

/** Returns a path with upper-case percent-encodings, as in patterns (RFC 3986 §6.2.2.1). */
export function withUpperEscapes(path: string): string {
  if (!path.includes("%")) return path; // the usual case
  return path.replace(/(?:%[\da-f]{2})+/gi, (codes) => codes.toUpperCase());
}

function whyNoRoute(path: string): string | undefined {
  if (!path.startsWith("/")) return 'Must start with "/".';
  if (path !== "/" && path.endsWith("/")) return 'Must not end with "/".';
  if (path.includes("//")) return "Must not have an empty segment.";
  if (/\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path) || /%(?:2f|5c|(?![0-9a-f]{2}))/i.test(path)) {
    return "Can never match: the response to such requests is 400.";
  }
  return undefined;
}

/**
 * Orders two patterns that match the same path, segment by segment: literal, then parameter, then
 * wildcard. If one pattern is a prefix of the other, the shorter one goes first, unless it ends in
 * a wildcard, which would match the paths of the longer one.
 */
export function comparePatterns(a: PathPattern, b: PathPattern): number {
  const length = Math.max(a.segments.length, b.segments.length);
  for (let index = 0; index < length; index++) {
    const difference = weightAt(a, index) - weightAt(b, index);
    if (difference !== 0) return difference;
  }
  return 0;
}

function weightAt({ segments }: PathPattern, index: number): number {
  const segment = segments[index];
  if (segment === undefined) return segments[index - 1]?.rank === 3 ? 4 : -1;
  // Of two segments of rank 1, the one with more literal characters goes first.
  return segment.rank === 1 ? 1 - segment.literal.length / 1e6 : segment.rank;
}

/** The usual pattern: literals and parameters with different names, in canonical spelling. */
const PLAIN = /^(?!.*(:\w+)\b.*\1\b)(?:\/(?::[a-z_]\w*|[\w.-]+))+$/i;

function toPlainPattern(text: string): PathPattern {
  const segments = text.slice(1).split("/").map((part): Segment =>
    part.startsWith(":")
      ? { rank: 2, literal: "", name: part.slice(1) }
      : { rank: 0, literal: part, name: "" }
  );
  const shape = text.replace(/:\w+|[.-]/g, (part) => part.startsWith(":") ? ":" : `\\${part}`);
  return { text, segments, shape, urlPattern: undefined };
}

/** Parses a pattern as URLPattern spells it, literals percent-encoded; TypeError if invalid. */
function toPattern(text: string): PathPattern {
  if (PLAIN.test(text)) return toPlainPattern(text); // a start parses a hundred
  const urlPattern = new URLPattern({ pathname: withUpperEscapes(text) });
  const parts: PathToken[][] = [[]];
  for (const token of tokensOf(urlPattern.pathname.slice(1))) {
    if (token.literal === "/") parts.push([]);
    else parts.at(-1)?.push(token);
  }
  const shape = parts.map((tokens) => `/${tokens.map(toShape).join("")}`).join("");
  const segments = parts.map(toSegment);
  const needsUrlPattern = segments.some(({ rank }) => rank === 1 || rank === 3);
  return { text, segments, shape, urlPattern: needsUrlPattern ? urlPattern : undefined };
}

function toSegment(tokens: readonly PathToken[]): Segment {
  const isOpen = tokens.some(({ mark }) => mark !== undefined);
  const isLiteral = tokens.every(({ literal }) => literal !== undefined);
  const parameter = tokens.length === 1 ? tokens[0]?.name : undefined;
  const rank = isOpen ? 3 : isLiteral ? 0 : parameter !== undefined ? 2 : 1;
  const literal = tokens.map((token) => token.literal ?? "").join("");
  return { rank, literal, name: parameter ?? "" };
}

function toShape(
  { name, regexp, mark, literal = "" }: PathToken,
  index: number,
  tokens: readonly PathToken[],
): string {
  // A name before a group does not matter: ":id(\\d+)" matches what "(\\d+)" matches.
  if (name !== undefined) return tokens[index + 1]?.regexp === undefined ? ":" : "";
  if (regexp !== undefined) return regexp === "(.*)" ? "*" : regexp;
  return mark ?? literal.replace(/\W/, "\\$&");
}
