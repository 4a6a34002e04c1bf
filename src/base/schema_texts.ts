import { isRecord } from "./shape.ts";

/** Names with their values, as a path, a query or a form has them. */
export type Texts = Iterable<readonly [name: string, value: string]>;

/** Marks the texts of one name that no schema has interpreted yet. */
const TEXTS = Symbol("texts");

/** A number as JSON has it (RFC 8259 §6). */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Groups texts by name: as strings and lists if `plain`, else marked for a schema of texts. */
export function textsByName(pairs: Texts, plain: boolean): Readonly<Record<string, unknown>> {
  const byName = Map.groupBy(pairs, ([name]) => name);
  return Object.fromEntries(Array.from(byName, ([name, given]) => {
    const texts = { [TEXTS]: given.map(([, text]) => text) };
    return [name, plain ? plainTexts(texts) : texts];
  }));
}

/** Returns a single text as a string, repeated texts as a list, any other value unchanged. */
export function plainTexts(value: unknown): unknown {
  const texts = textsOf(value);
  return texts?.length === 1 ? texts[0] : texts ?? value;
}

/** Returns texts as a list with a mark on each, any other value unchanged. */
export function separate(value: unknown): unknown {
  return textsOf(value)?.map((text) => ({ [TEXTS]: [text] })) ?? value;
}

/**
 * Returns a single text, or the number or boolean that it says, whichever passes the earliest test.
 * A text that passes none stays, for its schema to refuse. Repeated texts become a list.
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

/** Returns the texts of a marked value, else undefined. */
export function textsOf(value: unknown): readonly string[] | undefined {
  return isRecord(value) && TEXTS in value ? value[TEXTS] as readonly string[] : undefined;
}
