import { LIST_LIMIT } from "../../base/fields.ts";
import { ID_LENGTH } from "../../base/id.ts";

/** A schema of JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas by name, as an OpenAPI document's components have them. */
export type Schemas = Readonly<Record<string, Schema>>;

export const TEXT: Schema = { type: "string" };
export const FLAG: Schema = { type: "boolean" };
export const COUNT: Schema = { type: "integer", minimum: 0 };
/** RFC 3339, in UTC. */
export const TIME: Schema = { type: "string", format: "date-time" };
export const URI: Schema = { type: "string", format: "uri" };

/** The schema of that name in the document. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A schema with a sentence for its reader, and with more keywords where there are any. */
export function described(description: string, schema: Schema = TEXT): Schema {
  return { ...schema, description };
}

/** An id of base/id.ts, by the letter that it starts with. */
export function id(letter: string): Schema {
  return { type: "string", pattern: `^${letter}[0-9a-z]{${ID_LENGTH - 1}}$` };
}

/** A string of the form that the server itself looks for. */
export function matching({ source }: RegExp): Schema {
  return { type: "string", pattern: source };
}

export function word(...words: readonly string[]): Schema {
  return { type: "string", enum: words };
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}

export function list(items: Schema): Schema {
  return { type: "array", items };
}

/** A list of strings as a request may send it. */
export function givenList(items: Schema): Schema {
  return { type: "array", items, maxItems: LIST_LIMIT };
}

/** An object; a name that ends in `?` is a member that may be missing. */
export function object(members: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  const entries = Object.entries(members);
  const required = entries.map(([name]) => name).filter((name) => !name.endsWith("?"));
  const properties = entries.map(([name, schema]) => [name.replace("?", ""), schema] as const);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
    ...more,
  };
}

/** What a request may send: unknown members are refused. */
export function strictObject(members: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  return object(members, { additionalProperties: false, ...more });
}

/** One part of a list of such records. */
export function pageOf(name: string): Schema {
  return object({
    items: list(ref(name)),
    next_cursor: described(
      "Send it as cursor for the next part; null at the end.",
      nullable(TEXT),
    ),
  });
}

/** The same schema with more members. */
export function withMembers(name: string, members: Readonly<Record<string, Schema>>): Schema {
  return { allOf: [ref(name), object(members)] };
}
