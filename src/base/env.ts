import { formatDuration, formatSize, parseDuration, parseSize } from "./duration.ts";
import { nearest } from "./nearest.ts";

/** A value, or what is wrong with the text and what would be right: "is not one of: on, off". */
export type Parsed<T> = { readonly value: T } | { readonly wrong: string };

/** How values of one kind are read from text and written as text. */
export interface Kind<T> {
  parse(text: string): Parsed<T>;
  format(value: T): string;
}

/** The environment as a process is given it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One environment variable; an empty value counts as an absent one. */
export interface Variable<T> {
  readonly name: string;
  /** What holds when it is not set, as a reader is told it. */
  readonly default: string;
  /** One sentence for a table. */
  readonly meaning: string;
  /** Whether it may be given as a file, too: see `readSecretFiles`. */
  readonly isSecret?: boolean;
  /** Returns the value, or else the default after one line was added to `faults`. */
  read(env: Environment, errors: string[]): T;
  /** Returns the value as a reader may see it. */
  describe(value: T): string;
}

/** Returns a variable that has a value even when it is not set. */
export function variable<T>(
  name: string,
  kind: Kind<T>,
  fallback: T,
  meaning: string,
): Variable<T> {
  return {
    name,
    meaning,
    default: kind.format(fallback),
    read: (env, errors) => readValue(name, kind, env, errors, quote) ?? fallback,
    describe: (value) => kind.format(value),
  };
}

/** Returns a variable that may be absent; `absent` says what holds then. */
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
    read: (env, errors) => readValue(name, kind, env, errors, quote),
    describe: (value) => (value === undefined ? absent : kind.format(value)),
  };
}

/** Returns a variable whose value is neither described nor repeated in a fault. */
export function secret<T>(
  name: string,
  parse: Kind<T>["parse"],
  meaning: string,
): Variable<T | undefined> {
  const kind: Kind<T> = { parse, format: () => "set" };
  return {
    ...optional(name, kind, "none", meaning),
    isSecret: true,
    read: (env, errors) => readValue(name, kind, env, errors, () => "its value"),
  };
}

function readValue<T>(
  name: string,
  kind: Kind<T>,
  env: Environment,
  errors: string[],
  show: (text: string) => string,
): T | undefined {
  const text = env[name] ?? "";
  if (text === "") return undefined;
  const parsed = kind.parse(text);
  if ("value" in parsed) return parsed.value;
  errors.push(`${name}: ${show(text)} ${parsed.wrong}`);
  return undefined;
}

/**
 * Returns the environment with what the files hold that NAME_FILE names, for each of `names`; one
 * line break at a file's end is no part of it. Adds a line to `faults` for each that cannot be read,
 * that is empty (a command that failed leaves such a file), or that NAME is given beside.
 */
export function readSecretFiles(
  env: Environment,
  names: readonly string[],
  readText: (path: string) => string,
  errors: string[],
): Environment {
  const read = { ...env };
  for (const name of names) {
    const path = env[`${name}_FILE`] ?? "";
    if (path === "") continue;
    if ((env[name] ?? "") !== "") errors.push(`${name}: ${name}_FILE is given too; leave one out`);
    try {
      const text = readText(path).replace(/\r?\n$/, "");
      if (text === "") errors.push(`${name}_FILE: ${path} is empty`);
      read[name] = text;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      errors.push(`${name}_FILE: cannot be read: ${reason}`);
    }
  }
  return read;
}

/** Returns a whole number's kind, bounds included. */
export function wholeNumber(min: number, max: number): Kind<number> {
  const wrong = `is not a whole number from ${min} to ${max}`;
  return {
    parse(text) {
      const value = /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : undefined;
      return within(value, min, max, wrong);
    },
    format: String,
  };
}

/** Returns the kind of a duration in milliseconds, from `min` to `max` and in steps of `stepMs`. */
export function duration(min: string, max: string, stepMs = 1): Kind<number> {
  const [minMs = 0, maxMs = 0] = [parseDuration(min), parseDuration(max)];
  const whole = stepMs === 1_000 ? " of whole seconds" : "";
  const wrong =
    `is not a duration${whole} from ${min} to ${max} (write it like 500ms, 10s, 5m, 12h or 30d)`;
  return {
    parse(text) {
      const ms = parseDuration(text);
      return ms === undefined || ms % stepMs !== 0 ? { wrong } : within(ms, minMs, maxMs, wrong);
    },
    format: formatDuration,
  };
}

/** Returns the kind of a size in bytes, bounds included. */
export function size(min: string, max: string): Kind<number> {
  const [minBytes = 0, maxBytes = 0] = [parseSize(min), parseSize(max)];
  const wrong = `is not a size from ${min} to ${max} (write it like 512B, 64KiB or 1MiB)`;
  return {
    parse: (text) => within(parseSize(text), minBytes, maxBytes, wrong),
    format: formatSize,
  };
}

function within(
  value: number | undefined,
  min: number,
  max: number,
  wrong: string,
): Parsed<number> {
  return value === undefined || value < min || value > max ? { wrong } : { value };
}

/** Returns the kind of a value that is one of a few words, in exactly this case. */
export function choice<const T extends string>(words: readonly T[]): Kind<T> {
  const wrong = `is not one of: ${words.join(", ")}`;
  return {
    parse(text) {
      const value = words.find((word) => word === text);
      return value === undefined ? { wrong } : { value };
    },
    format: (value) => value,
  };
}

/** Returns the kind of a comma-separated list; `nothing` is the word for the empty one. */
export function list<T>(entry: Kind<T>, maxEntries: number, nothing = "none"): Kind<readonly T[]> {
  return {
    parse(text) {
      if (text === nothing) return { value: [] };
      const entries = text.split(",").map((part) => part.trim());
      if (entries.length > maxEntries) {
        return { wrong: `has ${entries.length} entries where ${maxEntries} at most are allowed` };
      }
      const value: T[] = [];
      for (const part of entries) {
        const parsed = entry.parse(part);
        if ("wrong" in parsed) {
          return { wrong: `has the entry ${quote(part)}, which ${parsed.wrong}` };
        }
        value.push(parsed.value);
      }
      return { value };
    },
    format: (value) => (value.length === 0 ? nothing : value.map(entry.format).join(",")),
  };
}

/**
 * Returns one line for each variable with this prefix that nobody reads, most likely a misspelling.
 * Its value is left out: it may be a secret. What matches `ignored` is read elsewhere.
 */
export function findUnknown(
  env: Environment,
  prefix: string,
  known: readonly string[],
  ignored: RegExp,
): readonly string[] {
  const ends = known.map((name) => name.slice(prefix.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && env[name] !== "" && env[name] !== undefined)
    .filter((name) => !known.includes(name) && !ignored.test(name))
    .map((name) => {
      const shown = /^\w{1,80}$/.test(name) ? name : quote(name);
      const meant = nearest(name.slice(prefix.length), ends);
      const hint = meant === undefined ? "" : `; did you mean ${prefix}${meant}?`;
      return `${shown}: no such variable${hint}`;
    });
}

/** Returns the text as one short printable line; what stands before an `@` may be a password. */
export function quote(text: string): string {
  const bare = text.includes("@") ? `***${text.slice(text.lastIndexOf("@"))}` : text;
  const short = bare.length > 80 ? `${bare.slice(0, 80)}…` : bare;
  return JSON.stringify(short).replace(
    /[^\x20-\x7e…]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
