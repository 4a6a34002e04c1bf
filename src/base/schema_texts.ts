import { isRecord } from "./shape.ts";

/** Names with their values, as a path, a query or a form has them. */
export type Texts = Iterable<readonly [name: string, value: string]>;

/** Marks the texts of one name, of which no schema has said yet what they are. */
const TEXTS = Symbol("texts");

/** A number as JSON has it (RFC 8259 §6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** An object of the texts of each name, as `plain` ones or for a schema of texts. */
export function textsByName(pairs: Texts, plain: boolean): Readonly<Record<string, unknown>> {
  const byName = Map.groupBy(pairs, ([name]) => name);
  return Object.fromEntries(Array.from(byName, ([name, given]) => {
    const texts = { [TEXTS]: given.map(([, text]) => text) };
    return [name, plain ? plainTexts(texts) : texts];
  }));
}

/** A text, or a list of those that are repeated; any other value as it is. */
export function plainTexts(value: unknown): unknown {
  const texts = textsOf(value);
  return texts?.length === 1 ? texts[0] : texts ?? value;
}

/** Each text by itself. */
export function separate(value: unknown): unknown {
  return textsOf(value)?.map((text) => ({ [TEXTS]: [text] })) ?? value;
}

/**
 * What is right by the first test that anything is: a text itself, or the number or boolean that it
 * says. One that is none stays a text, for its schema to refuse, and so do several.
 */
export function convertText(value: unknown, ...tests: ((value: unknown) => boolean)[]): unknown {
  const [text, ...more] = textsOf(value) ?? [];
  if (text === undefined || more.length > 0) return plainTexts(value);
  const meanings = [text, meaningOf(text)];
  const rights = tests.flatMap((isRight) => meanings.filter(isRight));
  return rights.length > 0 ? rights[0] : text;
}

function meaningOf(text: string): unknown {
  if (text === "true" || text === "false") return text === "true";
  const isExact = !/^-?\d+$/.test(text) || Number.isSafeInteger(Number(text));
  return NUMBER.test(text) && isExact ? Number(text) : text;
}

/** The texts of one name, where that is what a value is. */
export function textsOf(value: unknown): readonly string[] | undefined {
  return isRecord(value) && TEXTS in value ? value[TEXTS] as readonly string[] : undefined;
}
