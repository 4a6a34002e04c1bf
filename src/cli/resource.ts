import { pagination } from "../api/pagination.ts";
import type { Members } from "../base/plain_object.ts";
import type { Members as ShapeMembers, ObjectShape, Schema, Shape } from "../base/shape.ts";
import type { Argument, Command, CommandContext, Option, Values } from "./command.ts";
import { UsageError } from "./failure.ts";
import { formatPairs, formatTable, visible } from "./table.ts";

/** A noun of the command line; its commands call the operations of /backend/NOUN. */
export interface Resource {
  readonly noun: string;
  /** The argument that names an item; `find` returns its id if the argument is not the id. */
  readonly argument: Argument & { readonly example: string };
  readonly find?: Find;
  /** The member by which people know an item, unless it is the argument of `add`. */
  readonly label?: string;
  /** The members that a list shows; a member with `*` at its end may be cut to fit. */
  readonly columns: readonly string[];
  /** The members shown of an added or changed item; `*` means all others except times. */
  readonly shown?: readonly string[];
}

/** "a, b or c". */
const oneOf = (names: readonly string[]) => names.join(", ").replace(/, (?=[^,]*$)/, " or ");

/** The help of a command besides its purpose and the texts of its operation. */
type Words = Partial<Pick<Command, "details" | "examples">>;

/** Finds the id of the item that an argument names; throws Problem 404. */
type Find = (context: CommandContext, given: string) => string | Promise<string>;

/** How a member of a body or query is given, if that does not follow from its shape. */
export interface MemberWords extends Partial<Option> {
  /** The option's name if it differs from the member's. */
  readonly name?: string;
  /** The name of the argument that replaces the option. */
  readonly argument?: string;
  /** The name of a flag that replaces the option; if set, the member's value is this name. */
  readonly flag?: string;
  readonly find?: Find;
  /** Returns the value to be sent. */
  readonly read?: (values: Values, context: CommandContext) => unknown;
  /** Further options that `read` uses. */
  readonly also?: Readonly<Record<string, Option>>;
}

/** The words of members by name; null if the command gives the member in another way. */
type WordsOf<M> = { readonly [K in keyof M]?: MemberWords | null };

/** How members with these names are given in all commands. */
const DEFAULT_WORDS: Readonly<Record<string, MemberWords>> = {
  scopes: { name: "scope", value: '"A B"' },
  subscription: { value: "ID" },
  cursor: { meaning: "the cursor that the previous page printed" },
};

/** Makes the command of a list, which may be below an item; query parameters are options. */
export function listCommand<M extends ShapeMembers>(
  { noun, columns }: Pick<Resource, "noun" | "columns">,
  purpose: string,
  { query, members, item, isUnpaged = false, ...words }: Words & {
    readonly query?: M;
    readonly members?: WordsOf<M>;
    readonly item?: { readonly verb: string; readonly of: Resource; readonly below: string };
    /** Whether the response is the whole list, without pages. */
    readonly isUnpaged?: boolean;
  } = {},
): Command {
  const given = givenMembers({ ...query, ...!isUnpaged && pagination() }, { ...members });
  const verb = item?.verb ?? "list";
  return {
    examples: [`gatepost ${noun} ${verb} ${item?.of.argument.example ?? ""}`.trimEnd()],
    ...words,
    words: [noun, verb],
    purpose,
    ...item && { arguments: [item.of.argument] },
    options: given.options,
    async run(context) {
      const path = item ? await itemPath(item.of, context, item.below) : `/backend/${noun}`;
      const response = await context.call("GET", withQuery(path, await given.read(context)));
      const items = response?.["items"] as readonly Members[];
      if (items.length === 0 && !context.isJson) return context.terminal.note("There are none.");
      context.print(response, () => formatTable(items, columns, context.terminal));
      noteNextPage(context, response);
    },
  };
}

/** Makes the command `show`, or one below an item; `tables` has the columns of list members. */
export function showCommand(
  resource: Resource,
  purpose: string,
  { below = "", query = {}, tables = {}, ...words }: Words & {
    /** The path below the item, which is also the verb: "/health" for `health`. */
    readonly below?: string;
    readonly query?: ShapeMembers;
    readonly tables?: Readonly<Record<string, readonly string[]>>;
  } = {},
): Command {
  const { noun, argument } = resource;
  const verb = below.slice(1) || "show";
  const given = givenMembers(query, {});
  return {
    examples: [`gatepost ${noun} ${verb} ${argument.example}`],
    ...words,
    words: [noun, verb],
    purpose,
    arguments: [argument],
    options: given.options,
    async run(context) {
      const path = await itemPath(resource, context, below);
      const response = await context.call("GET", withQuery(path, await given.read(context)));
      context.print(response, (record) => {
        const pairs = Object.entries(record)
          .filter(([name]) => tables[name] === undefined && name !== "next_cursor");
        const lists = Object.entries(tables).flatMap(([name, columns]) => {
          const items = record[name] as readonly Members[];
          const table = () => formatTable(items, columns, context.terminal, "  ");
          return items.length === 0 ? [] : ["", table()];
        });
        return [formatPairs(pairs), ...lists].join("\n");
      });
      noteNextPage(context, response);
    },
  };
}

/** What a command sends, and how it prints the response. */
interface SendOptions<M extends ShapeMembers> extends Words {
  /** The method, if it is neither that of the verb in `METHODS` nor POST. */
  readonly method?: "PUT" | "DELETE";
  /** The path below the item, such as "/secret". A POST without it makes a new item. */
  readonly below?: string;
  /** The body, whose members are options. */
  readonly body?: ObjectShape<M>;
  readonly members?: WordsOf<M>;
  /** The question that is asked first, about the given argument; a DELETE always asks one. */
  readonly confirm?: (given: string) => string;
  /** Returns the sent members that were made here, which must be shown: no response has them. */
  readonly made?: (sent: Members, context: CommandContext) => Members;
  /** Returns the line above the shown members, if it does not follow from the verb. */
  readonly done?: (name: string, record: Members, values: Values) => string;
}

const METHODS: Readonly<Record<string, "PATCH" | "DELETE">> = {
  set: "PATCH",
  disable: "PATCH",
  delete: "DELETE",
};
const DONE = { POST: "added", PUT: "set", PATCH: "changed", DELETE: "deleted" };
const SHOWN_ONCE = { client_secret: " Its secret is", password: " The password is" };

/** Makes a command that adds, changes or removes something. */
export function sendCommand<M extends ShapeMembers>(
  resource: Resource,
  verb: string,
  purpose: string,
  { body, members, confirm, made, ...rest }: SendOptions<M> = {},
): Command {
  const { method = METHODS[verb] ?? "POST", below, done, ...words } = rest;
  const { noun, argument, label = "", shown = [] } = resource;
  const given = givenMembers(body?.members ?? {}, members ?? {}, method === "PATCH");
  const isNew = method === "POST" && below === undefined;
  const ask = confirm ?? (method === "DELETE" && ((name) => `Delete ${noun} ${name} permanently?`));
  return {
    examples: [`gatepost ${noun} ${verb} ${isNew ? "" : argument.example}`.trimEnd()],
    ...words,
    ...ask && { confirm: (values: Values) => ask(values.argument(argument.name)) },
    words: [noun, verb],
    purpose,
    arguments: isNew ? given.arguments : [argument],
    options: given.options,
    async run(context) {
      const { values, terminal, isJson } = context;
      const fixed = verb === "disable" && { status: "disabled" };
      const sent: Members = { ...await given.read(context), ...fixed };
      if (method === "PATCH" && Object.keys(sent).length === 0) {
        const names = Object.keys(given.options).map((name) => `--${name}`);
        throw new UsageError(`${noun} ${verb} needs ${oneOf(names)}`);
      }
      const target = isNew ? `/backend/${noun}` : await itemPath(resource, context, below);
      const response = await context.call(method, target, sent);
      const own = made?.(sent, context) ?? {};
      context.print(response, (answer) => {
        const record = { ...answer, ...own };
        const name = visible(String(record[label] ?? values.argument(argument.name)));
        const others = Object.keys(record)
          .filter((member) => ![...shown, label, "created_at"].includes(member));
        const pairs = shown.flatMap((member) => member === "*" ? others : member)
          .filter((member) => member in record)
          .map((member) => [member, record[member]] as const);
        const what = sent["status"] === "disabled" ? "disabled" : DONE[method];
        const once = Object.entries(SHOWN_ONCE).find(([member]) => member in record);
        const line = done?.(name, record, values) ?? `${noun[0]?.toUpperCase()}${noun.slice(1)} ` +
          `${name} has been ${what}.${once ? `${once[1]} shown here only.` : ""}`;
        return pairs.length === 0 ? line : `${line}\n\n${formatPairs(pairs)}`;
      });
      if (!isJson) return;
      for (const [name, value] of Object.entries(own)) terminal.note(`${name}: ${value}`);
    },
  };
}

/** Returns the path of the item that the argument names. */
export async function itemPath(
  { noun, argument, find }: Resource,
  context: CommandContext,
  below = "",
): Promise<string> {
  const given = context.values.argument(argument.name);
  const id = find ? await find(context, given) : given;
  return `/backend/${noun}/${encodeURIComponent(id)}${below}`;
}

/** Splits the values of an option, which may be repeated and hold several names each. */
export function splitNames(values: readonly string[] | undefined): string[] | undefined {
  return values?.flatMap((value) => value.split(/[ ,]+/)).filter((name) => name !== "");
}

/** Makes the options and arguments for the members of a body or query, and their reader. */
export function givenMembers(
  members: ShapeMembers,
  words: Readonly<Record<string, MemberWords | null | undefined>>,
  isChange = false,
) {
  const given = Object.entries(members).filter(([member]) => words[member] !== null)
    .map(([member, shape]) =>
      givenMember(member, shape, { ...DEFAULT_WORDS[member], ...words[member] }, isChange)
    );
  return {
    arguments: given.flatMap((each) => each.arguments),
    options: Object.fromEntries(given.flatMap(({ options }) => Object.entries(options))),
    /** Returns the given members, in the order of the shape. */
    async read(context: CommandContext): Promise<Members> {
      const entries = await Array.fromAsync(given, async ({ member, read }) =>
        [member, await read(context)] as const
      );
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    },
  };
}

function givenMember(
  member: string,
  { schema, isOptional, fallback }: Shape<unknown>,
  words: MemberWords,
  isChange: boolean,
) {
  const { flag, argument, find, read, also, ...more } = words;
  const isNullable = schema["anyOf"] !== undefined;
  const { name = flag ?? member.replaceAll("_", "-"), ...own } = more;
  const isRequired = !isOptional && fallback === undefined;
  const derived = {
    ...optionOf(schema, name, isChange),
    ...(isRequired && { isRequired }),
    ...(fallback !== undefined && fallback !== false && { default: String(fallback) }),
  };
  const option: Option = { ...flag ? { meaning: derived.meaning } : derived, ...own };
  return {
    member,
    arguments: argument === undefined ? [] : [{ name: argument, meaning: option.meaning }],
    options: argument === undefined ? { [name]: option, ...also } : {},
    read(context: CommandContext): unknown {
      const { values } = context;
      if (read) return read(values, context);
      if (argument !== undefined) return values.argument(argument);
      if (flag !== undefined) return values.flag(flag) ? flag : undefined;
      if (option.value === undefined) return values.flag(name);
      if (option.isRepeatable) return splitNames(values.list(name));
      const text = values.text(name);
      if (text === "none" && isNullable) return null;
      return text === undefined || !find ? text : find(context, text);
    },
  };
}

function optionOf(schema: Schema, name: string, isChange: boolean): Option {
  const { type, enum: words, description, minimum, maximum } = schema;
  const choices = Array.isArray(words) ? [oneOf(words)] : [];
  const text = String(description ?? "").replace(/\.$/, "")
    .replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase());
  const meaning = [...choices, ...text ? [text] : []].join(": ") +
    (isChange && schema["anyOf"] ? "; none removes it" : "");
  if (type === "boolean") return { meaning, ...(isChange && { isNegatable: true }) };
  if (type === "integer") return { value: "N", meaning: `${meaning}, ${minimum} to ${maximum}` };
  const value = schema["format"] === "date-time" ? "TIME" : name.toUpperCase();
  return { value, meaning, ...(type === "array" && { isRepeatable: true }) };
}

function withQuery(path: string, given: Members): string {
  const query = new URLSearchParams(given as Readonly<Record<string, string>>);
  return query.size === 0 ? path : `${path}?${query}`;
}

function noteNextPage({ isJson, terminal }: CommandContext, response: Members | undefined): void {
  const next = response?.["next_cursor"];
  if (next && !isJson) terminal.note(`Next page: --cursor ${next}`);
}
