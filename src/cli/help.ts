import type { Command, Option } from "./command.ts";
import { COMMON_OPTIONS, optionsOf } from "./command_line.ts";

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
  const named = commands.filter((command) =>
    words.every((word, index) => command.words[index] === word)
  );
  const [only] = named;
  if (only !== undefined && only.words.length === words.length) return commandHelp(only, layout);
  return words.length === 0 ? overview(commands, layout) : nounHelp(words, named, layout);
}

function overview(commands: readonly Command[], layout: HelpLayout): string {
  return [
    ...paragraph(
      "Administers Gatepost: who logs in, which apps there are, what is sent to whom. It works " +
        "on the database itself, beside a running server or without one, and what it does is " +
        "audited like a call of the backend.",
      layout,
    ),
    "",
    `${layout.bold("Usage")}  gatepost <noun> <verb> [arguments] [options]`,
    "",
    layout.bold("Commands"),
    ...pairs(commands.map((command) => [synopsis(command), command.purpose]), layout),
    "",
    layout.bold("Options of every command"),
    ...optionPairs(COMMON_OPTIONS, layout),
    "",
    layout.bold("Environment"),
    ...indented(
      "The server's own variables, GATEPOST_DATABASE and GATEPOST_SECRET_KEY above all: give " +
        "both programs the same. `gatepost check` shows what holds.",
      layout,
    ),
    "",
    layout.bold("Exit codes"),
    ...pairs([["0", "done"], ["1", "failed"], ["2", "wrong usage or configuration"]], layout),
    "",
    "More: gatepost <noun> <verb> --help, gatepost --version",
  ].join("\n");
}

function nounHelp(
  words: readonly string[],
  commands: readonly Command[],
  layout: HelpLayout,
): string {
  const name = words.join(" ");
  return [
    `${layout.bold("Usage")}  gatepost ${name} <verb> [arguments] [options]`,
    "",
    layout.bold("Verbs"),
    ...pairs(commands.map((command) => [synopsis(command), command.purpose]), layout),
    "",
    layout.bold("For example"),
    ...commands.flatMap(({ examples }) => examples.slice(0, 1)).slice(0, 3)
      .map((example) => INDENT + example),
    "",
    `More: gatepost ${name} <verb> --help`,
  ].join("\n");
}

function commandHelp(command: Command, layout: HelpLayout): string {
  const { purpose, details, examples } = command;
  const args = command.arguments.map(({ name, meaning }): [string, string] => [name, meaning]);
  return [
    ...paragraph(`${purpose}.`, layout),
    "",
    `${layout.bold("Usage")}  gatepost ${synopsis(command)} [options]`,
    ...args.length === 0 ? [] : ["", layout.bold("Arguments"), ...pairs(args, layout)],
    "",
    layout.bold("Options"),
    ...optionPairs(optionsOf(command), layout),
    ...details.flatMap((detail) => ["", ...paragraph(detail, layout)]),
    "",
    layout.bold(examples.length > 1 ? "Examples" : "Example"),
    ...examples.map((example) => INDENT + example),
  ].join("\n");
}

/** `app add NAME --url URL`: the words, the arguments, and what must be given. */
function synopsis(command: Command): string {
  const args = command.arguments.map(({ name, isOptional }) => isOptional ? `[${name}]` : name);
  const required = Object.entries(command.options)
    .filter(([, option]) => option.isRequired)
    .map(([name, { value }]) => `--${name} ${value ?? ""}`.trimEnd());
  return [...command.words, ...args, ...required].join(" ");
}

function optionPairs(
  options: Readonly<Record<string, Option>>,
  layout: HelpLayout,
): readonly string[] {
  return pairs(
    Object.entries(options).map(([name, option]) => {
      const dashes = option.isNegatable ? "--[no-]" : "--";
      const value = option.value === undefined ? "" : ` ${option.value}`;
      const repeat = option.isRepeatable ? " …" : "";
      const fallback = option.default === undefined ? "" : ` (default: ${option.default})`;
      return [dashes + name + value + repeat, option.meaning + fallback];
    }),
    layout,
  );
}

/** Names and their meanings in two columns; one that is long has its meaning on the next line. */
function pairs(entries: readonly (readonly [string, string])[], layout: HelpLayout): string[] {
  const width = Math.min(27, Math.max(...entries.map(([name]) => name.length)));
  const hang = INDENT + " ".repeat(width) + INDENT;
  return entries.flatMap(([name, meaning]) => {
    const [first = "", ...rest] = wrap(meaning, lineWidth(layout) - hang.length);
    const head = name.length > width
      ? [INDENT + name, hang + first]
      : [INDENT + name.padEnd(width) + INDENT + first];
    return [...head, ...rest.map((line) => hang + line)];
  });
}

function paragraph(text: string, layout: HelpLayout): string[] {
  return wrap(text, lineWidth(layout));
}

function indented(text: string, layout: HelpLayout): string[] {
  return wrap(text, lineWidth(layout) - INDENT.length).map((line) => INDENT + line);
}

function lineWidth({ columns }: HelpLayout): number {
  return Math.min(MAX_WIDTH, columns ?? MAX_WIDTH);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
