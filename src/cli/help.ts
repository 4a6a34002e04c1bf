import type { Command, Option } from "./command.ts";
import { COMMON_OPTIONS, optionsOf, startWith } from "./command_line.ts";
import type { Layout } from "./table.ts";

type Entry = readonly [name: string, meaning: string];

const MAX_WIDTH = 88;
const INDENT = "  ";

/** Returns the help of one command, of the verbs of a noun, or of everything. */
export function formatHelp(
  words: readonly string[],
  commands: readonly Command[],
  { columns = MAX_WIDTH, bold }: Layout,
): string {
  const named = startWith(commands, words);
  const [only] = named;
  const page = createPage(Math.min(MAX_WIDTH, columns), bold);
  const parts = only !== undefined && only.words.length === words.length
    ? commandHelp(only, page)
    : words.length === 0
    ? overview(commands, page)
    : nounHelp(words.join(" "), named, page);
  return parts.join("\n\n");
}

type Page = ReturnType<typeof createPage>;

/** Makes the functions that format the parts of the help. */
function createPage(width: number, bold: Layout["bold"]) {
  const titled = (title: string, lines: readonly string[]) => [bold(title), ...lines].join("\n");
  return {
    paragraph: (text: string) => wrap(text, width).join("\n"),
    usage: (text: string) => `${bold("Usage")}  gatepost ${text}`,
    text: (title: string, text: string) => titled(title, wrap(text, width, INDENT)),
    entries: (title: string, entries: readonly Entry[]) =>
      titled(title, formatEntries(entries, width)),
    examples: (title: string, examples: readonly string[]) =>
      titled(title, examples.map((example) => INDENT + example)),
  };
}

function overview(commands: readonly Command[], page: Page): string[] {
  return [
    page.paragraph(
      "Administers Gatepost: users, apps, grants, events and deliveries. It works directly on " +
        "the database, beside a running server or without one. Its changes are audited like " +
        "calls of the backend.",
    ),
    page.usage("<noun> <verb> [arguments] [options]"),
    page.entries("Commands", commands.map(entryOf)),
    page.entries("Options of every command", optionEntries(COMMON_OPTIONS)),
    page.text(
      "Environment",
      "The server's own variables. Give this program and the server the same values, above all " +
        "of GATEPOST_DATABASE and GATEPOST_SECRET_KEY. `gatepost check` shows the settings.",
    ),
    page.entries("Exit codes", [
      ["0", "done"], ["1", "failed"], ["2", "wrong usage or configuration"],
    ]),
    page.paragraph("More: gatepost <noun> <verb> --help, gatepost --version"),
  ];
}

function nounHelp(name: string, commands: readonly Command[], page: Page): string[] {
  const examples = commands.flatMap((command) => command.examples.slice(0, 1)).slice(0, 3);
  return [
    page.usage(`${name} <verb> [arguments] [options]`),
    page.entries("Verbs", commands.map(entryOf)),
    page.examples("For example", examples),
    page.paragraph(`More: gatepost ${name} <verb> --help`),
  ];
}

function commandHelp(command: Command, page: Page): string[] {
  const { purpose, arguments: args = [], details = [], examples } = command;
  const entries = args.map(({ name, meaning }): Entry => [name, meaning]);
  return [
    page.paragraph(`${purpose}.`),
    page.usage(`${synopsis(command)} [options]`),
    ...entries.length === 0 ? [] : [page.entries("Arguments", entries)],
    page.entries("Options", optionEntries(optionsOf(command))),
    ...details.map(page.paragraph),
    page.examples(examples.length > 1 ? "Examples" : "Example", examples),
  ];
}

function entryOf(command: Command): Entry {
  return [synopsis(command), command.purpose];
}

/** Returns the words, the arguments and the required options: `app add NAME --url URL`. */
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

/** Formats names and meanings in two columns; after a long name the meaning is on a new line. */
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

/** Wraps text into indented lines of at most `width`, unless a word is longer. */
function wrap(text: string, width: number, indent = ""): string[] {
  const most = Math.max(0, width - indent.length - 1);
  const lines = text.match(new RegExp(`\\S.{0,${most}}(?= |$)|\\S+`, "g")) ?? [];
  return lines.map((line) => indent + line);
}
