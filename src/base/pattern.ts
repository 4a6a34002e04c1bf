/** A character or a class, a place ("^", "$", "\b"), or alternatives that may be repeated. */
type Part = string | {
  readonly branches: readonly Sequence[];
  readonly min: number;
  readonly max: number;
};
type Sequence = readonly Part[];

/** A set of characters: a bit for each place in `alphabet()`, behind one for `END` and `OTHER`. */
type Characters = bigint;

/** How many ways through one text may be tried: fewer where it may be longer than that. */
const [MAX_WAYS, LONG_TEXT, MAX_WAYS_OF_LONG] = [256, 65_536, 16];

/** What a regular expression with flag `u` consists of, references and assertions left out. */
const TOKEN = new RegExp(
  [
    String.raw`\[(?:\\.|[^\\\]])*\]|\\u\{\w+\}|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}`,
    String.raw`\\x\w\w|\\c\w|\\[pP]\{[^}]*\}|\\[^k1-9]|\((?:\?:|\?<[^=!>]+>|(?!\?))`,
    String.raw`(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^\\(]`,
  ].join("|"),
  "gsuy",
);
const QUANTIFIER = /^(?<sign>[*+?])|^\{(?<min>\d+)(?<open>,?)(?<max>\d*)/;
/** The end of a text, and what the alphabet does not have. */
const [END, OTHER] = [1n, 2n];
/** Where in a set of characters those begin of which the alphabet has some. */
const SAMPLES = 2n + 0x30000n;
/** Names a character of the planes that are sampled. */
const NAMES_OTHER =
  /[\u{20000}-\u{10ffff}]|\\u\{0*(?:[2-9a-f]|10)[\da-f]{4}\}|\\ud(?:8[4-9a-f]|[9ab])/iu;
/** What atoms match; edges match no character. */
const known = new Map([["$", END], ["^", 0n], ["\\b", 0n], ["\\B", 0n]]);

/**
 * Says why a regular expression (flag `u`) is not tried on texts from outside, which have at most
 * `maxLength` characters; undefined where it takes linear time, or nearly. Wherever matching may go
 * on in two ways the next character must decide, or each way counts.
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
  // Without ^ it is tried at each place: one of a text is looked at by as many as it is long.
  const isTriedOnce = branches.every(([first]) => first === "^");
  const tries = isTriedOnce ? 1 : Math.min(maxLength, mostCharacters(whole));
  const mostWays = maxLength > LONG_TEXT ? MAX_WAYS_OF_LONG : MAX_WAYS;
  if (Math.max(1, tries) * countWays(whole, 0n, maxLength, false) <= mostWays) return undefined;
  return "Could take long: begin it with ^, let the next character decide how it goes on (in " +
    `what is repeated, always), or give a maxLength; more than ${mostWays} ways would be tried.`;
}

/** The alternatives up to the end of their group. */
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

/** How many characters it matches at most. */
function mostCharacters(sequence: Sequence): number {
  return sequence.reduce((sum, part) => {
    if (typeof part === "string") return sum + 1;
    return sum + part.max * Math.max(...part.branches.map(mostCharacters));
  }, 0);
}

/** How many ways there are through a text, at most; infinite where their number grows with it. */
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

/** Every character that may come first: those that follow too, where nothing has to come. */
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

/** The characters that a character or class matches. */
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
 * Every character of planes 0 and 1, and each 64th of the others. Low surrogates come before high
 * ones, so that no two of them make another character.
 */
function alphabet(): string {
  const span = (from: number, to: number, step = 1): string =>
    Array.from({ length: (to - from) / step }, (_, at) => String.fromCodePoint(from + at * step))
      .join("");
  return characters ||= span(0, 0xd800) + span(0xdc00, 0xe000) + span(0xd800, 0xdc00) +
    span(0xe000, 0x20000) + span(0x20000, 0x110000, 64);
}
