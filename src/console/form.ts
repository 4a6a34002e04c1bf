import { Refusal } from "./api.ts";
import { ask } from "./asking.ts";
import type { Question } from "./dialog.ts";
import { resolve, type Schema } from "./document.ts";
import { el } from "./element.ts";
import { wordsOf } from "./format.ts";

/**
 * Makes the fields of a body from its schema in the OpenAPI document. `given` has their first
 * values. `kind` is the prefix of their ids, which must differ between forms on one page.
 */
export async function fieldsOf(
  schema: Schema,
  given: Readonly<Record<string, unknown>> = {},
  kind = "field",
) {
  const { properties = {}, required = [] } = await resolve(schema);
  const fields = await Promise.all(Object.entries(properties).map(async ([name, each]) => {
    const own = await resolve(each);
    const id = `${kind}-${name}`;
    const help = el("p.help", { id: `${id}-help` }, own.description);
    const isRequired = required.includes(name);
    const shared = { id, name, "aria-describedby": help.id };
    const { input, read } = inputOf(own, given[name] ?? own.default, isRequired, shared);
    const some = own.items?.enum?.join(", ");
    if (isList(own)) help.append(` One per line${some ? `, of ${some}` : ""}.`);
    const words = wordsOf(name);
    const node = input.matches("[type=checkbox]")
      ? el("label.pick", input, el("span", el("b", words), help))
      : [el("label", { for: id }, words,
        isRequired ? null : el("span.muted", " optional")), input, help];
    return { name, input, help, read, node: el("div.field", node) };
  }));
  const filled = (all: readonly (readonly [string, unknown])[]) =>
    Object.fromEntries(all.filter(([, value]) => value !== undefined));
  return {
    node: el("div.fields", fields.map(({ node }) => node)),
    /** Returns the values that are not empty. Throws if the text of a JSON field is not JSON. */
    read: (): Record<string, unknown> =>
      filled(fields.map(({ name, read }) => [name, read()])),
    /** Returns the values that differ from `given`. A field that was emptied is null, or []. */
    changes: (): Record<string, unknown> => filled(fields.map(({ name, read }) => {
      const isBlank = (value: unknown) => String(value ?? "") === "";
      const value = read() ?? (properties[name]?.anyOf ? null : []);
      const isSame = isBlank(value) ? isBlank(given[name])
        : JSON.stringify(value) === JSON.stringify(given[name]);
      return [name, isSame ? undefined : value];
    })),
    /** Marks the fields that a refusal names. */
    mark(error: unknown): void {
      const errors = error instanceof Refusal ? error.errors : [];
      for (const { name, input, help } of fields) {
        const own = errors.filter(({ pointer }) => pointer?.split("/")[1] === name);
        input.ariaInvalid = String(own.length > 0);
        if (own.length > 0) help.textContent = own.map(({ detail }) => detail).join(" ");
      }
    },
  };
}

/** Asks with these fields, and marks those that a refusal of the server names. */
export function askWith<Made>(
  fields: Awaited<ReturnType<typeof fieldsOf>>,
  question: Question<Made>,
): Promise<Made | undefined> {
  const act = () => question.act().catch((error: unknown) => {
    fields.mark(error);
    throw error;
  });
  return ask({ body: fields.node, ...question, act });
}

/** Whether the schema is a list of texts, not of objects. */
const isList = ({ type, items }: Schema) =>
  type === "array" && items?.type !== "object" && !items?.$ref;

/** Returns the input for a value of this schema; `read` returns undefined if it is empty. */
function inputOf(
  schema: Schema,
  start: unknown,
  required: boolean,
  shared: Readonly<Record<string, string>>,
): { readonly input: HTMLElement; read(): unknown } {
  const { type, format, minimum: min, maximum: max, enum: values } = schema;
  if (values) {
    const options = required || start !== undefined ? values : ["", ...values];
    const input = el("select", shared, options.map((value) =>
      el("option", { value, selected: value === start }, value || "–")));
    return { input, read: () => input.value || undefined };
  }
  if (type === "boolean") {
    const input = el("input", { ...shared, type: "checkbox", checked: start === true });
    return { input, read: () => input.checked || start !== undefined ? input.checked : undefined };
  }
  const isNumber = type === "integer" || type === "number";
  if (isNumber || type === "string") {
    const kind = isNumber ? { type: "number", min, max }
      : format === "password" ? { type: "password", autocomplete: "new-password" }
      : format === "uri" ? { type: "url" } : { autocomplete: "off" };
    const input = el("input", { ...shared, value: String(start ?? ""), required, ...kind });
    const read = () => isNumber ? Number(input.value) : input.value;
    return { input, read: () => input.value === "" ? undefined : read() };
  }
  const isLines = isList(schema);
  const text = isLines && Array.isArray(start) ? start.join("\n")
    : JSON.stringify(start ?? undefined, null, 2);
  const input = el("textarea", { ...shared, rows: isLines ? 3 : 6, spellcheck: "false" }, text);
  const parse = (given: string): unknown =>
    given === "" ? undefined : isLines ? given.split(/\s+/) : JSON.parse(given);
  const read = () => parse(input.value.trim());
  input.addEventListener("input", () => {
    input.setCustomValidity("");
    try {
      read();
    } catch (error) {
      input.setCustomValidity(String(error));
    }
  });
  return { input, read };
}
