/**
 * A small scanner of TypeScript source: enough to see what a module imports, calls and quotes
 * without mistaking a comment or a string for code. It knows comments, strings, templates and
 * regular expressions, and takes everything else as words and punctuation.
 */

/** One piece of source. The `text` of a string or a template is what is between its quotes. */
export type Token = {
  kind: "word" | "punctuation" | "string" | "template" | "regex";
  text: string;
  /** Counted from 1. */
  line: number;
};

/** One import, re-export, dynamic import, or call of `process.getBuiltinModule`. */
export type Import = {
  /** Undefined if it is computed. */
  specifier: string | undefined;
  typeOnly: boolean;
  line: number;
};

const WORDS_BEFORE_REGEX = new Set(
  "return typeof case in of delete void throw new else do await yield instanceof".split(" "),
);

const SPACE = /\s+/y;
const COMMENT = /\/\/[^\n]*|\/\*[^]*?\*\//y;
const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$]*/uy;
const NUMBER = /\d[\w.]*/y;
const STRING = /"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** Matches from a backtick or a substitution's closing brace to the next of either. */
const TEMPLATE = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{|$)/y;

/** Splits source into tokens, without its comments. */
export function scanSource(source: string): Token[] {
  const tokens: Token[] = [];
  // For each template that is open, how many braces its current substitution has open.
  const substitutions: number[] = [];
  let at = 0;
  let line = 1;

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const text = pattern.exec(source)?.[0];
    if (text === undefined) return undefined;
    at += text.length;
    return text;
  }
  function add(kind: Token["kind"], text: string): void {
    tokens.push({ kind, text, line });
  }
  function countLines(text: string): void {
    line += text.split("\n").length - 1;
  }
  function takeTemplatePart(): void {
    at += 1;
    const text = take(TEMPLATE) ?? "";
    const opens = text.endsWith("${");
    add("template", opens ? text.slice(0, -2) : text.slice(0, -1));
    countLines(text);
    if (opens) substitutions.push(0);
  }

  while (at < source.length) {
    const skipped = take(SPACE) ?? take(COMMENT);
    if (skipped !== undefined) {
      countLines(skipped);
      continue;
    }
    const word = take(WORD) ?? take(NUMBER);
    if (word !== undefined) {
      add("word", word);
      continue;
    }
    const quoted = take(STRING);
    if (quoted !== undefined) {
      add("string", quoted.slice(1, -1));
      continue;
    }
    const regex = mayStartRegex(tokens.at(-1)) ? take(REGEX) : undefined;
    if (regex !== undefined) {
      add("regex", regex);
      continue;
    }
    const sign = source.charAt(at);
    const open = substitutions.at(-1);
    if (sign === "`") {
      takeTemplatePart();
    } else if (sign === "}" && open === 0) {
      substitutions.pop();
      takeTemplatePart();
    } else {
      if (open !== undefined && sign === "{") substitutions.push((substitutions.pop() ?? 0) + 1);
      if (open !== undefined && sign === "}") substitutions.push((substitutions.pop() ?? 0) - 1);
      add("punctuation", sign);
      at += 1;
    }
  }
  return tokens;
}

/** A slash divides after a value and starts a regular expression elsewhere. */
function mayStartRegex(previous: Token | undefined): boolean {
  if (previous === undefined) return true;
  if (previous.kind === "word") return WORDS_BEFORE_REGEX.has(previous.text);
  return previous.kind === "punctuation" && !")]}".includes(previous.text);
}

/** Lists what a module imports, in the order of its source. */
export function findImports(tokens: Token[]): Import[] {
  const imports: Import[] = [];
  tokens.forEach((token, index) => {
    if (token.kind !== "word") return;
    const next = tokens[index + 1];
    const { line } = token;
    const isCall = token.text === "import" && next?.text === "(" && tokens[index - 1]?.text !== ".";
    if (isCall || token.text === "getBuiltinModule") {
      const argument = tokens[index + 2];
      const isLiteral = argument?.kind === "string" && tokens[index + 3]?.text === ")";
      imports.push({ specifier: isLiteral ? argument.text : undefined, typeOnly: false, line });
      return;
    }
    if (tokens[index - 1]?.text === "." || next === undefined) return;
    if (token.text !== "import" && token.text !== "export") return;
    if (next.text === "." || next.text === ":") return; // import.meta, a key
    const specifier = findSpecifier(tokens, index);
    if (specifier !== undefined) {
      imports.push({ specifier, typeOnly: next.text === "type", line });
    }
  });
  return imports;
}

/** The module of the statement that starts at an `import` or `export`, if it names one. */
function findSpecifier(tokens: Token[], start: number): string | undefined {
  const first = tokens[start + 1];
  if (tokens[start]?.text === "import" && first?.kind === "string") return first.text;
  let depth = 0;
  for (let at = start + 1; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token === undefined) return undefined;
    const { kind, text } = token;
    if (text === "from" && depth === 0) {
      const module = tokens[at + 1];
      if (module?.kind === "string") return module.text;
    }
    if (kind === "punctuation" && text === "{") depth += 1;
    else if (kind === "punctuation" && text === "}") depth -= 1;
    else if (depth === 0 && !(kind === "word" || text === "*" || text === ",")) return undefined;
    else if (depth === 1 && !(kind === "word" || kind === "string" || text === ",")) {
      return undefined;
    }
    // Between two clauses only `from` may follow a closing brace.
    if (depth === 0 && text === "}" && tokens[at + 1]?.text !== "from") return undefined;
  }
  return undefined;
}
