import { Refusal } from "./api.ts";
import { ask, type Question } from "./dialog.ts";
import { resolve, type Schema } from "./document.ts";
import { el } from "./element.ts";

/** The fields of a body, made from its schema in the OpenAPI document. */
export interface Fields {
  readonly node: HTMLElement;
  /** What has been filled in; what was left empty is left out. Throws where JSON is not JSON. */
  read(): Record<string, unknown>;
  /** What is no longer as it was given; what was emptied is null, or no items. */
  changes(): Record<string, unknown>;
  /** Marks the fields that a refusal names. */
  mark(error: unknown): void;
}

interface Field {
  readonly name: string;
  readonly input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
  readonly help: HTMLElement;
  read(): unknown;
}

/**
 * Makes fields for the members of an object. `given` is what they begin with; `kind` is what their
 * ids begin with, where forms stand beside one another.
 */
export async function fieldsOf(
  schema: Schema,
  given: Readonly<Record<string, unknown>> = {},
  kind = "field",
): Promise<Fields> {
  const { properties = {}, required = [] } = await resolve(schema);
  const fields = await Promise.all(Object.entries(properties).map(async ([name, each]) => makeField(
    { id: `${kind}-${name}`, name, required: required.includes(name) },
    await resolve(each),
    given[name],
  )));
  return {
    node: el("div", { class: "fields" }, fields.map(({ name, input, help }) => {
      const label = el("label", { for: input.id }, name.replaceAll("_", " "),
        required.includes(name) ? null : el("span", { class: "muted" }, " optional"));
      const isFlag = input.matches("[type=checkbox]");
      return el("div", { class: "field tight" }, isFlag ? [el("label", { class: "pick" }, input,
        el("span", {}, el("b", {}, name.replaceAll("_", " ")), help))] : [label, input, help]);
    })),
    read: () => Object.fromEntries(fields.map(({ name, read }) => [name, read()])
      .filter(([, value]) => value !== undefined)),
    changes() {
      const isBlank = (value: unknown) => String(value ?? "") === "";
      const all = fields.map(({ name, read }) => {
        const value = read() ?? (properties[name]?.anyOf ? null : []);
        const isSame = isBlank(value) ? isBlank(given[name])
          : JSON.stringify(value) === JSON.stringify(given[name]);
        return [name, isSame ? undefined : value] as const;
      });
      return Object.fromEntries(all.filter(([, value]) => value !== undefined));
    },
    mark(error) {
      const errors = error instanceof Refusal ? error.errors : [];
      for (const { name, input, help } of fields) {
        const own = errors.filter(({ pointer }) => pointer?.split("/")[1] === name);
        input.setAttribute("aria-invalid", String(own.length > 0));
        help.classList.toggle("down", own.length > 0);
        if (own.length > 0) help.textContent = own.map(({ detail }) => detail).join(" ");
      }
    },
  };
}

/** Asks with these fields; what `send` resolves with, or undefined where it was not sent. */
export async function askWith<Made>(
  fields: Fields,
  send: () => Promise<Made>,
  question: Omit<Question, "act">,
): Promise<Made | undefined> {
  let made: Made | undefined;
  const act = async () => made = await send().catch((error: unknown) => {
    fields.mark(error);
    throw error;
  });
  await ask({ body: fields.node, ...question, act });
  return made;
}

function makeField(
  { name, id, required }: Pick<HTMLInputElement, "name" | "id" | "required">,
  schema: Schema,
  given: unknown,
): Field {
  const { type, format, description = "", minimum, maximum } = schema;
  const start = given ?? schema.default;
  const help = el("p", { class: "help", id: `${id}-help` }, description);
  const shared = { id, name, "aria-describedby": help.id };
  const text = (value: string, parse: (text: string) => unknown, more = {}) => {
    const input = el("input", { ...shared, value, required, ...more });
    return { name, input, help, read: () => input.value === "" ? undefined : parse(input.value) };
  };
  const area = (value: string, parse: (text: string) => unknown, rows: number) => {
    const input = el("textarea", { ...shared, rows, spellcheck: "false" }, value);
    const read = () => (input.value.trim() === "" ? undefined : parse(input.value));
    input.addEventListener("input", () => {
      input.setCustomValidity("");
      try {
        read();
      } catch (error) {
        input.setCustomValidity(String(error));
      }
    });
    return { name, input, help, read };
  };
  if (schema.enum) {
    const options = required || start !== undefined ? schema.enum : ["", ...schema.enum];
    const input = el("select", shared, options.map((value) =>
      el("option", { value, selected: value === start }, value || "–")));
    return { name, input, help, read: () => input.value || undefined };
  }
  if (type === "boolean") {
    const input = el("input", { ...shared, type: "checkbox", checked: start === true });
    const read = () => input.checked || start !== undefined ? input.checked : undefined;
    return { name, input, help, read };
  }
  if (type === "integer" || type === "number") {
    const value = start === undefined || start === null ? "" : String(start);
    return text(value, Number, { type: "number", min: minimum, max: maximum });
  }
  if (type === "array" && schema.items?.type !== "object" && !schema.items?.$ref) {
    const some = schema.items?.enum?.join(", ");
    help.textContent = `${description} One per line${some ? `, of ${some}` : ""}.`.trim();
    const lines = Array.isArray(start) ? start.join("\n") : "";
    return area(lines, (value) => value.split(/\s+/).filter(Boolean), 3);
  }
  if (type === "string") {
    const kind = format === "password" ? { type: "password", autocomplete: "new-password" }
      : format === "uri" ? { type: "url" } : { autocomplete: "off" };
    return text(typeof start === "string" ? start : "", String, kind);
  }
  const json = start === undefined || start === null ? "" : JSON.stringify(start, null, 2);
  return area(json, (value) => JSON.parse(value), 6);
}
