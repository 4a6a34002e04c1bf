import type { Command, Option } from "./command.ts";
import { COMMON_OPTIONS, optionsOf, startWith } from "./command_line.ts";
import type { Layout } from "./table.ts";

type Entry = readonly [name: string, meaning: string];

/** A paragraph, how something is typed, or what stands under a title. */
type Part =
  | string
  | { readonly usage: string }
  | {
    readonly title: string;
    readonly text?: string;
    readonly entries?: readonly Entry[];
    readonly examples?: readonly string[];
  };

const MAX_WIDTH = 88;
const INDENT = "  ";

/** The help of what `words` name: one command, the verbs of a noun, or everything. */
export function formatHelp(
  words: readonly string[],
  commands: readonly Command[],
  { columns = MAX_WIDTH, bold }: Layout,
): string {
  const named = startWith(commands, words);
  const [only] = named;
  const parts = only !== undefined && only.words.length === words.length
    ? commandHelp(only)
    : words.length === 0
    ? overview(commands)
    : nounHelp(words.join(" "), named);
  const width = Math.min(MAX_WIDTH, columns);
  return parts.map((part) => formatPart(part, width, bold).join("\n")).join("\n\n");
}

function overview(commands: readonly Command[]): Part[] {
  return [
    "Administers Gatepost: who logs in, which apps there are, what is sent to whom. It works " +
      "on the database itself, beside a running server or without one, and what it does is " +
      "audited like a call of the backend.",
    { usage: "<noun> <verb> [arguments] [options]" },
    { title: "Commands", entries: commands.map(entryOf) },
    { title: "Options of every command", entries: optionEntries(COMMON_OPTIONS) },
    {
      title: "Environment",
      text: "The server's own variables, GATEPOST_DATABASE and GATEPOST_SECRET_KEY above all: " +
        "give both programs the same. `gatepost check` shows their values.",
    },
    {
      title: "Exit codes",
      entries: [["0", "done"], ["1", "failed"], ["2", "wrong usage or configuration"]],
    },
    "More: gatepost <noun> <verb> --help, gatepost --version",
  ];
}

function nounHelp(name: string, commands: readonly Command[]): Part[] {
  const examples = commands.flatMap((command) => command.examples.slice(0, 1)).slice(0, 3);
  return [
    { usage: `${name} <verb> [arguments] [options]` },
    { title: "Verbs", entries: commands.map(entryOf) },
    { title: "For example", examples },
    `More: gatepost ${name} <verb> --help`,
  ];
}

function commandHelp(command: Command): Part[] {
  const { purpose, arguments: args = [], details = [], examples } = command;
  const entries = args.map(({ name, meaning }): Entry => [name, meaning]);
  return [
    `${purpose}.`,
    { usage: `${synopsis(command)} [options]` },
    ...entries.length === 0 ? [] : [{ title: "Arguments", entries }],
    { title: "Options", entries: optionEntries(optionsOf(command)) },
    ...details,
    { title: examples.length > 1 ? "Examples" : "Example", examples },
  ];
}

function entryOf(command: Command): Entry {
  return [synopsis(command), command.purpose];
}

/** `app add NAME --url URL`: the words, the arguments, and what must be given. */
function synopsis({ words, arguments: args = [], options = {} }: Command): string {
  const names = args.map(({ name, isOptional }) => isOptional ? `[${name}]` : name);
  const required = Object.entries(options)
    .filter(([, option]) => option.isRequired)
    .map(([name, { value }]) => `--${name} ${value ?? ""}`.trimEnd());
  return [...words, ...names, ...required].join(" ");
}

function optionEntries(options: Readonly<Record<string, Option>>): Entry[] {
  return Object.entries(options).map(([name, option]) => {
    const dashes = option.isNegatable ? "--[no-]" : "--";
    const value = option.value === undefined ? "" : ` ${option.value}`;
    const repeat = option.isRepeatable ? " …" : "";
    const fallback = option.default === undefined ? "" : ` (default: ${option.default})`;
    return [dashes + name + value + repeat, option.meaning + fallback];
  });
}

function formatPart(part: Part, width: number, bold: Layout["bold"]): string[] {
  if (typeof part === "string") return wrap(part, width);
  if ("usage" in part) return [`${bold("Usage")}  gatepost ${part.usage}`];
  const { title, text = "", entries = [], examples = [] } = part;
  return [
    bold(title),
    ...wrap(text, width, INDENT),
    ...formatEntries(entries, width),
    ...examples.map((example) => INDENT + example),
  ];
}

/** Names and their meanings in two columns; one that is long has its meaning on the next line. */
function formatEntries(entries: readonly Entry[], width: number): string[] {
  const column = Math.min(27, Math.max(0, ...entries.map(([name]) => name.length)));
  const hang = INDENT + " ".repeat(column) + INDENT;
  return entries.flatMap(([name, meaning]) => {
    const lines = wrap(meaning, width, hang);
    if (name.length > column) return [INDENT + name, ...lines];
    const [first = "", ...rest] = lines;
    return [INDENT + name.padEnd(column) + first.slice(hang.length - INDENT.length), ...rest];
  });
}

/** The text in lines of at most `width` where its words allow that, each after `indent`. */
function wrap(text: string, width: number, indent = ""): string[] {
  const most = Math.max(0, width - indent.length - 1);
  const lines = text.match(new RegExp(`\\S.{0,${most}}(?= |$)|\\S+`, "g")) ?? [];
  return lines.map((line) => indent + line);
}
