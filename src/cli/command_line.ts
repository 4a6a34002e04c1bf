import { parseArgs, type ParseArgsConfig } from "node:util";
import { messageOf } from "../base/message_of.ts";
import type { Command, Option, Values } from "./command.ts";
import { visible } from "./table.ts";

/** The meaning of a command line; `words` name a command, or the nouns above it. */
export type CommandLine =
  | { readonly kind: "help"; readonly words: readonly string[] }
  | { readonly kind: "version" }
  | { readonly kind: "run"; readonly command: Command; readonly values: Values }
  /** A noun without a verb, or no word at all. */
  | { readonly kind: "incomplete"; readonly words: readonly string[] }
  /** `message` says in one line what is wrong. */
  | { readonly kind: "wrong"; readonly message: string };

/** The options of every command. */
export const COMMON_OPTIONS: Readonly<Record<string, Option>> = {
  json: { meaning: "print JSON for scripts: the response of the backend, if there is one" },
  help: { meaning: "print this help" },
};

/** Returns all options of a command, in the order of its help. */
export function optionsOf({ options, confirm }: Command): Readonly<Record<string, Option>> {
  const yes = { yes: { meaning: "do not ask for confirmation" } };
  return { ...options, ...confirm && yes, ...COMMON_OPTIONS };
}

/** Parses the arguments of the process. */
export function parseCommandLine(
  args: readonly string[],
  commands: readonly Command[],
): CommandLine {
  const [first] = args;
  // Node replaces bytes that are not UTF-8 by this character, which must not be stored silently.
  if (args.some((arg) => arg.includes("\ufffd"))) return wrong("an argument is not UTF-8", []);
  if (first === "--version" || first === "-V") return { kind: "version" };
  const isHelpCommand = first === "help";
  const typed = isHelpCommand ? args.slice(1) : args;
  const end = typed.findIndex((_, at) => startWith(commands, typed.slice(0, at + 1)).length === 0);
  const words = end === -1 ? typed : typed.slice(0, end);
  const [next] = typed.slice(words.length);
  const below = startWith(commands, words);
  const command = below.find((each) => each.words.length === words.length);
  // Arguments after the command are ignored, so that asking for its help never runs it.
  if (isHelpCommand && (command || next === undefined)) return { kind: "help", words };
  if (command) return parseRest(command, typed.slice(words.length));
  if (next === undefined) return { kind: "incomplete", words };
  if (isHelp(next)) return { kind: "help", words };
  const known = new Set(below.map((each) => each.words[words.length] ?? ""));
  return unknownWord(next, words, [...known]);
}

function unknownWord(word: string, words: readonly string[], known: string[]): CommandLine {
  if (word.startsWith("-")) {
    return wrong("options come after the command, as in gatepost user list --json", words);
  }
  const what = words.length === 0 ? "there is no command" : `${words.join(" ")} has no verb`;
  return wrong(`${what} ${quote(word)}; use one of ${known.join(", ")}`, words);
}

function wrong(message: string, words: readonly string[]): CommandLine {
  return { kind: "wrong", message: `${message} (${["gatepost", ...words, "--help"].join(" ")})` };
}

function parseRest(command: Command, args: readonly string[]): CommandLine {
  const options = optionsOf(command);
  const config = {
    args: [...args],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, isRepeatable = false }]) =>
        [name, { type: value === undefined ? "boolean" : "string", multiple: isRepeatable }]
      ),
    ),
    allowPositionals: true,
    allowNegative: true,
  } satisfies ParseArgsConfig;
  const { words } = command;
  const name = words.join(" ");
  // Not strictly at first, so that --help works beside a wrong option.
  const { tokens } = parseArgs({ ...config, strict: false, tokens: true });
  const given = tokens.filter((token) => token.kind === "option");
  if (given.some((token) => isHelp(token.rawName))) return { kind: "help", words };
  const unknown = given.find(({ name, rawName }) =>
    rawName.startsWith("--no-") ? !options[name.replace(/^no-/, "")]?.isNegatable : !options[name]
  );
  if (unknown !== undefined) {
    // A JSON argument may be a negative number.
    const hint = unknown.rawName.startsWith("--") ? "" : "; put -- before such an argument";
    return wrong(`${name} has no option ${quote(unknown.rawName)}${hint}`, words);
  }
  const repeated = given.find(({ name, value }, index) =>
    value !== undefined && !options[name]?.isRepeatable &&
    given.findIndex((each) => each.name === name) < index
  );
  if (repeated !== undefined) return wrong(`${name} takes --${repeated.name} only once`, words);
  try {
    const { positionals, values } = parseArgs({ ...config, strict: true });
    const error = findError(command, positionals, Object.keys(values));
    return error === undefined
      ? { kind: "run", command, values: toValues(command, positionals, values) }
      : wrong(`${name} ${error}`, words);
  } catch (error) {
    return wrong(visible(messageOf(error).replaceAll("\n", " ")), words);
  }
}

/** Says what is missing or too much, without a surplus argument, which may be a password. */
function findError(
  { arguments: args = [], options = {} }: Command,
  positionals: readonly string[],
  given: readonly string[],
): string | undefined {
  const names = args.map(({ name }) => name);
  // An empty argument comes from a script whose variable is not set.
  const missing = args.find(({ isOptional }, index) => !isOptional && !positionals[index]);
  if (missing !== undefined) return `needs ${missing.name}`;
  if (positionals.length > names.length && !args.at(-1)?.isRepeatable) {
    return names.length === 0 ? "takes no arguments" : `takes only ${names.join(" ")}`;
  }
  const required = Object.entries(options)
    .find(([name, option]) => option.isRequired && !given.includes(name));
  return required && `needs --${required[0]} ${required[1].value ?? ""}`.trimEnd();
}

function toValues(
  { arguments: args = [] }: Command,
  positionals: readonly string[],
  values: Readonly<Record<string, unknown>>,
): Values {
  const names = args.map(({ name }) => name);
  return {
    argument: (name) => positionals[names.indexOf(name)] ?? "",
    flag: (name) => typeof values[name] === "boolean" ? values[name] : undefined,
    text: (name) => typeof values[name] === "string" ? values[name] : undefined,
    list(name) {
      if (names.includes(name)) return positionals.slice(names.indexOf(name));
      return Array.isArray(values[name]) ? values[name].map(String) : undefined;
    },
  };
}

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** Returns the commands whose words begin with these. */
export function startWith(commands: readonly Command[], words: readonly string[]): Command[] {
  return commands.filter((each) => words.every((word, index) => each.words[index] === word));
}

function quote(word: string): string {
  return `"${visible(word.length > 40 ? `${word.slice(0, 40)}…` : word)}"`;
}
