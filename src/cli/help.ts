import type { Command, Option } from "./command.ts";
import { COMMON_OPTIONS, optionsOf, startWith } from "./command_line.ts";

/** How the help is laid out. */
export interface HelpLayout {
  /** The terminal's width; undefined where there is none. */
  readonly columns: number | undefined;
  readonly bold: (text: string) => string;
}

const MAX_WIDTH = 88;
const INDENT = "  ";

/** The help of what `words` name: one command, the verbs of a noun, or everything. */
export function formatHelp(
  words: readonly string[],
  commands: readonly Command[],
  layout: HelpLayout,
): string {
  const width = Math.min(MAX_WIDTH, layout.columns ?? MAX_WIDTH);
  const named = startWith(commands, words);
  const [only] = named;
  const lines = only !== undefined && only.words.length === words.length
    ? commandHelp(only, width, layout.bold)
    : words.length === 0
    ? overview(commands, width, layout.bold)
    : nounHelp(words.join(" "), named, width, layout.bold);
  return lines.join("\n");
}

type Bold = HelpLayout["bold"];

function overview(commands: readonly Command[], width: number, bold: Bold): string[] {
  return [
    ...wrap(
      "Administers Gatepost: who logs in, which apps there are, what is sent to whom. It works " +
        "on the database itself, beside a running server or without one, and what it does is " +
        "audited like a call of the backend.",
      width,
    ),
    "",
    `${bold("Usage")}  gatepost <noun> <verb> [arguments] [options]`,
    "",
    bold("Commands"),
    ...pairs(commands.map((command) => [synopsis(command), command.purpose]), width),
    "",
    bold("Options of every command"),
    ...optionPairs(COMMON_OPTIONS, width),
    "",
    bold("Environment"),
    ...wrap(
      "The server's own variables, GATEPOST_DATABASE and GATEPOST_SECRET_KEY above all: give " +
        "both programs the same. `gatepost check` shows their values.",
      width,
      INDENT,
    ),
    "",
    bold("Exit codes"),
    ...pairs([["0", "done"], ["1", "failed"], ["2", "wrong usage or configuration"]], width),
    "",
    "More: gatepost <noun> <verb> --help, gatepost --version",
  ];
}

function nounHelp(
  name: string,
  commands: readonly Command[],
  width: number,
  bold: Bold,
): string[] {
  return [
    `${bold("Usage")}  gatepost ${name} <verb> [arguments] [options]`,
    "",
    bold("Verbs"),
    ...pairs(commands.map((command) => [synopsis(command), command.purpose]), width),
    "",
    bold("For example"),
    ...commands.flatMap(({ examples }) => examples.slice(0, 1)).slice(0, 3)
      .map((example) => INDENT + example),
    "",
    `More: gatepost ${name} <verb> --help`,
  ];
}

function commandHelp(command: Command, width: number, bold: Bold): string[] {
  const { purpose, details, examples } = command;
  const args = command.arguments.map(({ name, meaning }): [string, string] => [name, meaning]);
  return [
    ...wrap(`${purpose}.`, width),
    "",
    `${bold("Usage")}  gatepost ${synopsis(command)} [options]`,
    ...args.length === 0 ? [] : ["", bold("Arguments"), ...pairs(args, width)],
    "",
    bold("Options"),
    ...optionPairs(optionsOf(command), width),
    ...details.flatMap((detail) => ["", ...wrap(detail, width)]),
    "",
    bold(examples.length > 1 ? "Examples" : "Example"),
    ...examples.map((example) => INDENT + example),
  ];
}

/** `app add NAME --url URL`: the words, the arguments, and what must be given. */
function synopsis(command: Command): string {
  const args = command.arguments.map(({ name, isOptional }) => isOptional ? `[${name}]` : name);
  const required = Object.entries(command.options)
    .filter(([, option]) => option.isRequired)
    .map(([name, { value }]) => `--${name} ${value ?? ""}`.trimEnd());
  return [...command.words, ...args, ...required].join(" ");
}

function optionPairs(options: Readonly<Record<string, Option>>, width: number): string[] {
  const entries = Object.entries(options).map(([name, option]): [string, string] => {
    const dashes = option.isNegatable ? "--[no-]" : "--";
    const value = option.value === undefined ? "" : ` ${option.value}`;
    const repeat = option.isRepeatable ? " …" : "";
    const fallback = option.default === undefined ? "" : ` (default: ${option.default})`;
    return [dashes + name + value + repeat, option.meaning + fallback];
  });
  return pairs(entries, width);
}

/** Names and their meanings in two columns; one that is long has its meaning on the next line. */
function pairs(entries: readonly (readonly [string, string])[], width: number): string[] {
  const column = Math.min(27, Math.max(...entries.map(([name]) => name.length)));
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
