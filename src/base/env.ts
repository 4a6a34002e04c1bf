import { formatDuration, formatSize, parseDuration, parseSize } from "./duration.ts";
import { escapeUnit } from "./log.ts";
import { messageOf } from "./message_of.ts";

/** A value, or what is wrong with its text: "is not one of: on, off". */
export type Parsed<T> = { readonly value: T } | { readonly wrong: string };

/** How values of one kind are read from text and written as text. */
export interface Kind<T> {
  parse(text: string): Parsed<T>;
  format(value: T): string;
  /** The value of an empty text. Without this member an empty text counts as not set. */
  readonly empty?: T;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** One environment variable. */
export interface Variable<T> {
  readonly name: string;
  /** The value of the variable when it is not set, as a reader sees it. */
  readonly default: string;
  /** One sentence for the table of variables. */
  readonly meaning: string;
  /** For a secret: the variable that may name a file with the secret instead. */
  readonly fileName?: string;
  /** Returns the value, else the default. Adds a line to `errors` for each error of the text. */
  read(env: Environment, errors: string[], readText: ReadText): T;
  /** Returns the value as a reader may see it. */
  describe(value: T): string;
}

/** Reads a file that a variable names. Undefined means that another program will read the file. */
export type ReadText = (path: string) => string | undefined;

export type ValueOf<V> = V extends Variable<infer T> ? T : never;

/** Returns a variable that may be absent; `absent` says what applies then. */
export function optional<T>(
  name: string,
  kind: Kind<T>,
  absent: string,
  meaning: string,
): Variable<T | undefined> {
  return {
    name,
    meaning,
    default: absent,
    read: (env, errors) => parseText(name, env[name], kind, errors),
    describe: (value) => (value === undefined ? absent : kind.format(value)),
  };
}

/** Returns a variable that has a value even when it is not set. */
export function variable<T>(
  name: string,
  kind: Kind<T>,
  fallback: T,
  meaning: string,
): Variable<T> {
  return {
    ...optional(name, kind, kind.format(fallback), meaning),
    read: (env, errors) => parseText(name, env[name], kind, errors) ?? fallback,
  };
}

/**
 * Returns the variable of a secret, which is neither described nor repeated in an error. NAME_FILE
 * may give the path of a file with the secret. One line break at the end is dropped. An empty file
 * is an error: a command that failed leaves such a file.
 */
export function secret<T>(name: string, kind: Kind<T>, meaning: string): Variable<T | undefined> {
  const fileName = `${name}_FILE`;
  const show = () => "its value";
  return {
    ...optional(name, { ...kind, format: () => "set" }, "none", meaning),
    fileName,
    read(env, errors, readText) {
      const path = env[fileName];
      if (!path) return parseText(name, withoutBreak(env[name]), kind, errors, show);
      if (env[name]) errors.push(`${name}: ${fileName} is given too; leave one out`);
      try {
        const given = readText(path);
        const text = withoutBreak(given);
        if (given !== undefined && text === "") errors.push(`${fileName}: ${path} is empty`);
        return parseText(fileName, text, kind, errors, show);
      } catch (error) {
        const reason = messageOf(error);
        // What does not look like a path may be the secret itself, given in the wrong variable.
        const shown = /^[./].*[^=\s]$/.test(path) ? reason : reason.replaceAll(path, "its value");
        errors.push(`${fileName}: cannot be read: ${shown}`);
        return undefined;
      }
    },
  };
}

function withoutBreak(text = ""): string {
  return text.replace(/\r?\n$/, "");
}

function parseText<T>(
  name: string,
  text: string | undefined,
  { parse, empty }: Kind<T>,
  errors: string[],
  show = quote,
): T | undefined {
  if (text === undefined) return undefined;
  if (text === "") return empty;
  // Node replaces bytes that are not UTF-8 with U+FFFD.
  const parsed = text.includes("\ufffd") ? { wrong: "is not UTF-8" } : parse(text);
  if ("value" in parsed) return parsed.value;
  errors.push(`${name}: ${show(text)} ${parsed.wrong}`);
  return undefined;
}

/** Returns the kind of texts that `parse` reads; `wrong` is the error if it returns undefined. */
export function kindOf<T>(
  parse: (text: string) => T | undefined,
  wrong: string,
  format: (value: T) => string = String,
): Kind<T> {
  return {
    parse(text) {
      const value = parse(text);
      return value === undefined ? { wrong } : { value };
    },
    format,
  };
}

/** Returns the kind of a text that is used unchanged where `isRight` accepts it. */
export function textKind(isRight: (text: string) => boolean, wrong: string): Kind<string> {
  return kindOf((text) => isRight(text) ? text : undefined, wrong);
}

/**
 * Whether a text may be a path. Control characters and outer spaces come from an env file that was
 * written elsewhere, and would name a new file. So would a leading quote, `~/` or `$HOME` that no
 * shell has expanded, as in a container's env file.
 */
export function isPath(text: string): boolean {
  return text.trim() === text && !/\p{Cc}|^(~\/|["'$])/u.test(text);
}

/** Returns the kind of a whole number, bounds included. */
export function wholeNumber(min: number, max: number): Kind<number> {
  const parse = (text: string) => /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : NaN;
  return kindOf(within(parse, min, max), `is not a whole number from ${min} to ${max}`);
}

/** Returns the kind of a duration in milliseconds, from `min` to `max` and in steps of `stepMs`. */
export function duration(min: string, max: string, stepMs = 1): Kind<number> {
  const parse = within(parseDuration, parseDuration(min), parseDuration(max), stepMs);
  const whole = stepMs === 1_000 ? " of whole seconds" : "";
  const form = "write it like 500ms, 10s, 5m, 12h or 30d";
  return kindOf(parse, `is not a duration${whole} from ${min} to ${max} (${form})`, formatDuration);
}

/** Returns the kind of a size in bytes, bounds included. */
export function size(min: string, max: string): Kind<number> {
  const wrong = `is not a size from ${min} to ${max} (write it like 512B, 64KiB or 1MiB)`;
  return kindOf(within(parseSize, parseSize(min), parseSize(max)), wrong, formatSize);
}

function within(parse: (text: string) => number | undefined, min = 0, max = 0, step = 1) {
  return (text: string) => {
    const value = parse(text) ?? NaN;
    return value >= min && value <= max && value % step === 0 ? value : undefined;
  };
}

/** Returns the kind of a value that is one of a few words, in exactly this case. */
export function choice<const T extends string>(words: readonly T[]): Kind<T> {
  const find = (text: string) => words.find((word) => word === text);
  return kindOf(find, `is not one of: ${words.join(", ")}`);
}

/** Returns the kind of a comma-separated list. `none` or an empty text is the empty list. */
export function list<T>(entry: Kind<T>, maxEntries: number): Kind<readonly T[]> {
  return {
    empty: [],
    parse(text) {
      if (text === "none") return { value: [] };
      const entries = text.split(",").map((part) => part.trim());
      if (entries.length > maxEntries) {
        return { wrong: `has ${entries.length} entries where ${maxEntries} at most are allowed` };
      }
      const value: T[] = [];
      for (const part of entries) {
        const parsed = entry.parse(part);
        if ("value" in parsed) value.push(parsed.value);
        else return { wrong: `has the entry ${quote(part)}, which ${parsed.wrong}` };
      }
      return { value };
    },
    format: (value) => (value.length === 0 ? "none" : value.map(entry.format).join(",")),
  };
}

/** Returns one short printable line; `***` hides a possible password (before `@`, in a query). */
export function quote(text: string): string {
  const bare = text.replace(/^.*@/s, "***@").replace(/(?<=[?#&]).+/s, "***");
  const short = bare.length > 80 ? `${bare.slice(0, 80)}…` : bare;
  return JSON.stringify(short).replace(/[^\x20-\x7e…]/g, escapeUnit);
}
