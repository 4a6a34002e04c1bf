import type { Members as ShapeMembers, ObjectShape, Schema } from "../base/shape.ts";
import type { Argument, Command, CommandContext, Option, Values } from "./command.ts";
import { UsageError } from "./failure.ts";
import { type Column, formatPairs, formatTable, type Members } from "./table.ts";

/** The commands of one noun, which call the operations of one resource of the backend. */
export interface Resource {
  readonly noun: string;
  /** Where the backend has it. */
  readonly path: string;
  /** Names one on the command line; `find` makes the id of it, where it is not that already. */
  readonly argument: Argument;
  readonly find?: (context: CommandContext, given: string) => Promise<string>;
  /** The members that a list shows; one with `*` at its end may be cut to fit. */
  readonly columns: readonly string[];
  /** The members that are shown of what has been added or changed. */
  readonly shown: readonly string[];
}

/** The words of one command, beside what its operation says already. */
export interface CommandWords {
  readonly verb: string;
  readonly purpose: string;
  readonly details?: readonly string[];
  readonly examples: readonly string[];
  /** Asked first, of what the argument names. */
  readonly confirm?: (given: string) => string;
  readonly options?: Readonly<Record<string, Option>>;
}

/** How a member of a body or a query is given, where its shape does not say that. */
export interface MemberWords extends Partial<Option> {
  /** The option's name where it is not the member's. */
  readonly name?: string;
  /** A flag in place of what its shape would make of it. */
  readonly isFlag?: true;
  /** Finds what is sent of what was given. */
  readonly read?: (values: Values, context: CommandContext) => unknown;
}

/** Words of members by their names; null: the command has another way to give it. */
type WordsOf<M> = { readonly [K in keyof M]?: MemberWords | null };

/** Which part of a list is shown. */
export const LIST_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { value: "N", meaning: "how many, 1 to 200", default: "50" },
  cursor: { value: "CURSOR", meaning: "continue where a list ended, as it said" },
};

/** `list`; its filters are the parameters of the query that it is given. */
export function listCommand<M extends ShapeMembers>(
  { noun, path, columns }: Resource,
  words: Omit<CommandWords, "verb">,
  query?: M,
  memberWords: WordsOf<M> = {},
): Command {
  const given = givenMembers(query ?? {}, { limit: null, cursor: null, ...memberWords }, false);
  return {
    ...toCommand(noun, { verb: "list", ...words }, [], { ...given.options, ...LIST_OPTIONS }),
    async run(context) {
      const target = withQuery(path, { ...await given.read(context), ...readPart(context.values) });
      const response = await (await context.openBackend()).call("GET", target);
      const { items } = JSON.parse(response) as { readonly items: readonly Members[] };
      if (items.length === 0 && !context.isJson) return context.terminal.note("There are none.");
      context.print(response, () => formatItems(context, items, columns));
      noteMore(context, response);
    },
  };
}

/** `show`; members that `tables` names are lists, with their columns. */
export function showCommand(
  resource: Resource,
  words: Omit<CommandWords, "verb">,
  tables: Readonly<Record<string, readonly string[]>> = {},
): Command {
  const options = words.options ?? {};
  return {
    ...toCommand(resource.noun, { verb: "show", ...words }, [resource.argument], options),
    async run(context) {
      const target = withQuery(await itemPath(resource, context), readPart(context.values));
      const response = await (await context.openBackend()).call("GET", target);
      context.print(response, (record) => {
        const pairs = Object.entries(record)
          .filter(([name]) => tables[name] === undefined && name !== "next_cursor");
        const lists = Object.entries(tables).flatMap(([name, columns]) => {
          const items = record[name] as readonly Members[];
          return items.length === 0 ? [] : ["", formatItems(context, items, columns, "  ")];
        });
        return [formatPairs(pairs), ...lists].join("\n");
      });
      noteMore(context, response);
    },
  };
}

/** What a command sends, and what it prints then. */
export interface Sending<M extends ShapeMembers> {
  readonly method: "POST" | "PATCH" | "DELETE";
  /** Below the item's path: "/secret". */
  readonly below?: string;
  /** The body: each member is an option. */
  readonly body?: ObjectShape<M>;
  readonly members?: WordsOf<M>;
  /** Members that are always sent so. */
  readonly fixed?: Members;
  /** Makes a new item, without an argument. */
  readonly isNew?: true;
  /** Makes a new item; this member of it is an argument. */
  readonly made?: { readonly member: string; readonly argument: Argument };
  /** One line, above the members that are shown. */
  readonly done: (given: string, record: Members, values: Values) => string;
}

/** A command that adds, changes or removes something. */
export function sendCommand<M extends ShapeMembers>(
  resource: Resource,
  words: CommandWords,
  { method, below = "", body, members, fixed, isNew, made, done }: Sending<M>,
): Command {
  const unlisted = made && { [made.member]: null };
  const given = givenMembers(body?.members ?? {}, { ...members, ...unlisted }, method === "PATCH");
  const argument = made?.argument ?? resource.argument;
  const args = isNew ? [] : [argument];
  return {
    ...toCommand(resource.noun, words, args, { ...words.options, ...given.options }),
    async run(context) {
      const { values } = context;
      const name = values.argument(argument.name);
      const sent = { ...await given.read(context), ...fixed, ...made && { [made.member]: name } };
      const isEmpty = Object.values(sent).every((value) => value === undefined);
      if (method === "PATCH" && isEmpty) {
        throw new UsageError(`${resource.noun} ${words.verb} needs something to change`);
      }
      const target = isNew || made ? resource.path : await itemPath(resource, context, below);
      const text = body || fixed ? JSON.stringify(sent) : undefined;
      const response = await (await context.openBackend()).call(method, target, text);
      context.print(response, (record) => showDone(resource, done(name, record, values), record));
    },
  };
}

/** A line, and below it the members that a resource shows. */
export function showDone({ shown }: Resource, line: string, record: Members): string {
  const pairs = shown.filter((name) => name in record).map((name) => [name, record[name]] as const);
  return pairs.length === 0 ? line : `${line}\n\n${formatPairs(pairs)}`;
}

/** The path of the item that the command line names. */
export async function itemPath(
  { path, argument, find }: Resource,
  context: CommandContext,
  below = "",
): Promise<string> {
  const given = context.values.argument(argument.name);
  return `${path}/${encodeURIComponent(find ? await find(context, given) : given)}${below}`;
}

/** The names in the values of an option that may be repeated, or hold several at once. */
export function splitNames(values: readonly string[] | undefined): string[] | undefined {
  return values?.flatMap((value) => value.split(/[ ,]+/)).filter((name) => name !== "");
}

function toCommand(
  noun: string,
  { verb, purpose, details = [], examples, confirm }: CommandWords,
  args: readonly Argument[],
  options: Readonly<Record<string, Option>>,
): Omit<Command, "run"> {
  const [{ name } = { name: "" }] = args;
  const question = confirm && { confirm: (values: Values) => confirm(values.argument(name)) };
  return { words: [noun, verb], purpose, arguments: args, options, details, examples, ...question };
}

/** The options of a body's or a query's members, and how what is given of them is read. */
function givenMembers(
  members: ShapeMembers,
  words: Readonly<Record<string, MemberWords | null | undefined>>,
  isChange: boolean,
) {
  const given = Object.entries(members).filter(([member]) => words[member] !== null)
    .map(([member, { schema, isOptional, fallback }]) => {
      const { name = member.replaceAll("_", "-"), read, isFlag, ...own } = words[member] ?? {};
      const isRequired = !isOptional && fallback === undefined;
      const derived = {
        ...optionOf(schema, name, isChange),
        ...(isRequired && { isRequired }),
        ...(fallback !== undefined && fallback !== false && { default: String(fallback) }),
      };
      const option: Option = { ...isFlag ? { meaning: derived.meaning } : derived, ...own };
      const readIt = read ?? ((values: Values) => readOption(values, name, option));
      return { member, name, option, read: readIt };
    });
  return {
    options: Object.fromEntries(given.map(({ name, option }) => [name, option])),
    async read(context: CommandContext): Promise<Members> {
      const entries = given.map(async ({ member, read }) =>
        [member, await read(context.values, context)] as const
      );
      return Object.fromEntries(await Promise.all(entries));
    },
  };
}

function optionOf(schema: Schema, name: string, isChange: boolean): Option {
  const { type, enum: words, description } = schema;
  const choices = Array.isArray(words) ? words.join(", ").replace(/, ([^,]*)$/, " or $1") : "";
  const meaning = String(description ?? choices).replace(/\.$/, "")
    .replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase());
  if (type === "boolean") return { meaning, ...(isChange && { isNegatable: true }) };
  return { value: name.toUpperCase(), meaning, ...(type === "array" && { isRepeatable: true }) };
}

function readOption(values: Values, name: string, { value, isRepeatable }: Option): unknown {
  if (value === undefined) return values.flag(name);
  return isRepeatable ? splitNames(values.list(name)) : values.text(name);
}

function readPart(values: Values): Members {
  return { limit: values.text("limit"), cursor: values.text("cursor") };
}

function withQuery(path: string, given: Members): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Columns of members: `*` at the end: may be cut to fit; `=title` where that is not the name. */
export function columnsOf(members: readonly string[]): Column[] {
  return members.map((given) => {
    const [member = "", title = member.replace(/_at$/, "").replaceAll("_", " ")] =
      given.replace("*", "").split("=");
    const mayShrink = given.includes("*");
    return { title: title.toUpperCase(), member, mayShrink };
  });
}

function formatItems(
  { terminal }: CommandContext,
  items: readonly Members[],
  columns: readonly string[],
  indent = "",
): string {
  const layout = { columns: terminal.columns, emphasize: terminal.bold, indent };
  return formatTable(items, columnsOf(columns), layout);
}

function noteMore({ isJson, terminal }: CommandContext, response: string): void {
  const { next_cursor: next } = JSON.parse(response) as { readonly next_cursor?: string | null };
  if (next && !isJson) terminal.note(`There are more: --cursor ${next}`);
}
