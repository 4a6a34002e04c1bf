/** An atom (a character or a class), an assertion ("^", "$", "\b"), or repeated alternatives. */
type Part = string | {
  readonly branches: readonly Sequence[];
  readonly min: number;
  readonly max: number;
};
type Sequence = readonly Part[];

/** A set of characters, one bit each: `END`, `OTHER`, then every index of `alphabet()`. */
type Characters = bigint;

/** The most ways through one text that may be tried; fewer where a text may exceed `LONG_TEXT`. */
const [MAX_WAYS, LONG_TEXT, MAX_WAYS_OF_LONG] = [256, 65_536, 16];

/** The tokens of a regular expression with flag `u`, without backreferences and lookarounds. */
const TOKEN = new RegExp(
  [
    String.raw`\[(?:\\.|[^\\\]])*\]|\\u\{\w+\}|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}`,
    String.raw`\\x\w\w|\\c\w|\\[pP]\{[^}]*\}|\\[^k1-9]|\((?:\?:|\?<[^=!>]+>|(?!\?))`,
    String.raw`(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^\\(]`,
  ].join("|"),
  "gsuy",
);
const QUANTIFIER = /^(?<sign>[*+?])|^\{(?<min>\d+)(?<open>,?)(?<max>\d*)/;
/** The end of a text, and all characters that are not in the alphabet. */
const [END, OTHER] = [1n, 2n];
/** The first bit of the planes of which the alphabet has samples only. */
const SAMPLES = 2n + 0x30000n;
/** Matches an atom that names a character of the sampled planes. */
const NAMES_OTHER =
  /[\u{20000}-\u{10ffff}]|\\u\{0*(?:[2-9a-f]|10)[\da-f]{4}\}|\\ud(?:8[4-9a-f]|[9ab])/iu;
/** The sets of atoms, cached. "^" and "\b" match no character. */
const known = new Map([["$", END], ["^", 0n], ["\\b", 0n], ["\\B", 0n]]);

/**
 * Returns why a regular expression (flag `u`) must not run on outside texts of at most `maxLength`
 * characters, or undefined where it takes about linear time. Wherever matching may go on in two
 * ways, the next character must decide; otherwise each way counts.
 */
export function checkPattern(source: string, maxLength = Infinity): string | undefined {
  try {
    new RegExp(source, "u");
  } catch {
    return "Must be a regular expression that is valid with flag u.";
  }
  const tokens = source.match(TOKEN) ?? [];
  if (tokens.join("") !== source) return "Must have no backreference, lookaround or modifier.";
  const branches = readBranches(tokens.values());
  const whole: Sequence = [{ branches, min: 1, max: 1 }];
  // Without ^ each index is tried: a character is read by as many tries as a match is long.
  const isTriedOnce = branches.every(([first]) => first === "^");
  const tries = isTriedOnce ? 1 : Math.min(maxLength, mostCharacters(whole));
  const mostWays = maxLength > LONG_TEXT ? MAX_WAYS_OF_LONG : MAX_WAYS;
  if (Math.max(1, tries) * countWays(whole, 0n, maxLength, false) <= mostWays) return undefined;
  return "Could take long: begin it with ^, let the next character decide how it goes on (in " +
    `what is repeated, always), or give a maxLength; more than ${mostWays} ways would be tried.`;
}

/** Returns the alternatives of a group, up to its end. */
function readBranches(tokens: IterableIterator<string>): Sequence[] {
  let branch: Part[] = [];
  const branches = [branch];
  for (const token of tokens) {
    const { sign, min, open, max } = QUANTIFIER.exec(token)?.groups ?? {};
    if (token === ")") return branches;
    if (token === "|") branches.push(branch = []);
    else if (token.startsWith("(")) branch.push({ branches: readBranches(tokens), min: 1, max: 1 });
    else if (sign === undefined && min === undefined) branch.push(token);
    else {
      const body = [branch.splice(-1)];
      const most = sign === "?" ? 1 : Number((open === "" ? min : max) || Infinity);
      branch.push({ branches: body, min: sign === "+" ? 1 : Number(min ?? 0), max: most });
    }
  }
  return branches;
}

/** Returns how many characters the sequence can match at most. */
function mostCharacters(sequence: Sequence): number {
  return sequence.reduce((sum, part) => {
    if (typeof part === "string") return sum + 1;
    return sum + part.max * Math.max(...part.branches.map(mostCharacters));
  }, 0);
}

/** Returns the most ways through one text; infinite if their number grows with the text. */
function countWays(
  sequence: Sequence,
  follow: Characters,
  maxLength: number,
  isRepeated: boolean,
): number {
  return sequence.reduce((ways, part, index) => {
    if (typeof part === "string") return ways;
    const { branches, min, max } = part;
    const next = firstOf(sequence.slice(index + 1), follow);
    const first = firstOf([part], 0n);
    const after = max > 1 ? first | next : next;
    const entries = branches.map((branch) => firstOf(branch, after));
    const choices = entries.map((one) => entries.filter((other) => (one & other) !== 0n).length);
    const rounds = min < max && (first & next) !== 0n ? Math.min(max, maxLength) - min + 1 : 1;
    const isLoop = isRepeated || max > 1;
    const own = Math.max(1, rounds) * Math.max(1, ...choices);
    if (isLoop && Math.max(...choices) > 1 || isRepeated && rounds > 1) return Infinity;
    return branches.reduce((product, branch) =>
      product * countWays(branch, after, maxLength, isLoop), ways * own);
  }, 1);
}

/** Returns the characters that may come first, with `follow` if the sequence may be empty. */
function firstOf(sequence: Sequence, follow: Characters): Characters {
  let first = 0n;
  for (const part of sequence) {
    first |= typeof part === "string" ? charactersOf(part)
      : part.branches.reduce((all, branch) => all | firstOf(branch, 0n), 0n);
    if (!canBeEmpty(part)) return first;
  }
  return first | follow;
}

function canBeEmpty(part: Part): boolean {
  if (typeof part === "string") return charactersOf(part) === 0n;
  return part.min === 0 || part.branches.some((branch) => branch.every(canBeEmpty));
}

/** Returns the characters that an atom matches. */
function charactersOf(atom: string): Characters {
  let found = known.get(atom);
  if (found !== undefined) return found;
  found = 0n;
  for (const { 0: run, index } of alphabet().matchAll(new RegExp(`(?:${atom})+`, "gu"))) {
    found |= (1n << BigInt(run.length)) - 1n << BigInt(index + 2);
  }
  if (found === 0n || found >> SAMPLES > 0n || NAMES_OTHER.test(atom)) found |= OTHER;
  known.set(atom, found);
  return found;
}

let characters = "";

/**
 * Returns every character of planes 0 and 1, and each 64th of the others. Low surrogates come
 * before high ones, so that no two of them make another character.
 */
function alphabet(): string {
  const span = (from: number, to: number, step = 1): string =>
    Array.from({ length: (to - from) / step }, (_, at) => String.fromCodePoint(from + at * step))
      .join("");
  return characters ||= span(0, 0xd800) + span(0xdc00, 0xe000) + span(0xd800, 0xdc00) +
    span(0xe000, 0x20000) + span(0x20000, 0x110000, 64);
}
