import { checkPattern } from "./pattern.ts";
import { isPlainObject } from "./plain_object.ts";
import type { FieldError } from "./problem.ts";
import { FORMATS, KEYWORDS, type Keywords, TYPES } from "./schema_keywords.ts";
import { convertText, plainTexts, separate, textsOf } from "./schema_texts.ts";
import { below, isRecord, LIST_LIMIT, pointerTo, type Report, type Shape } from "./shape.ts";

type Errors = FieldError[];

/** Returns the value with its defaults. Adds to `errors`; `at` is the value's JSON Pointer. */
type Check<T = unknown> = (value: T, at: string, errors: Errors) => unknown;

interface Compiled {
  readonly check: Check;
  /** Whether a value has one of the schema's types. */
  readonly hasType: (value: unknown) => boolean;
  /** The default as JSON text: each value gets a copy of its own. */
  readonly fallback?: string;
}

const MAX_DEPTH = 32;
const anything = <T>(value: T): T => value;
const unknownMember: Check = (_value, at, errors) => fail(errors, at, "Unknown member.");

/**
 * Makes a shape of a JSON Schema (2020-12); mod/schema.ts lists the keywords. Reports errors of the
 * schema. Members of a value that are undefined count as missing. Strings are measured in
 * characters.
 *
 * @param ofTexts whether values come from `textsByName`: their texts become the schema's types
 */
export function toShape(schema: unknown, report: Report, ofTexts = false): Shape<unknown> {
  const { check } = compile(schema, report, [], ofTexts);
  return {
    schema: isRecord(schema) ? schema : {},
    definitions: {},
    parse: (value, report) =>
      value === undefined ? report("Is required.") : checkWhole(check, value, report),
  };
}

function checkWhole(check: Check, value: unknown, report: Report): unknown {
  const errors: Errors = [];
  const parsed = check(value, "", errors);
  for (const { detail, pointer } of errors) report(detail, pointer);
  return parsed;
}

/** @param above the schemas that contain this one */
function compile(
  schema: unknown,
  report: Report,
  above: readonly unknown[],
  ofTexts: boolean,
): Compiled {
  // An instance of a class is a schema of some library.
  const orElse = above.length === 0 ? " or" : "; only the whole may be";
  const wrong = !isPlainObject(schema) ? `Must be a JSON Schema${orElse} a Standard Schema.`
    : above.includes(schema) ? "Contains itself: recursive schemas are not supported."
    : above.length === MAX_DEPTH ? `Is deeper than ${MAX_DEPTH} schemas.` : undefined;
  if (wrong !== undefined) {
    report(wrong);
    return { check: anything, hasType: () => true };
  }
  const keywords = KEYWORDS.parse(schema, report);
  const compileAt: CompileAt = (inner, ...path) =>
    compile(inner, below(report, ...path), [...above, schema], ofTexts);
  const types = [keywords.type ?? []].flat();
  const kinds = types.flatMap((type) => TYPES[type] ? [TYPES[type]] : []);
  const typeDetail = `Must be ${kinds.map(([, what]) => what).join(" or ")}.`;
  const [[isOfOne] = [() => true], ...others] = kinds;
  const hasType = others.length === 0
    ? isOfOne
    : (value: unknown) => kinds.some(([isOf]) => isOf(value));
  const lists = listValues(keywords);
  const text = checkText(keywords, report);
  const number = checkNumber(keywords);
  const free = ofTexts && !keywords.anyOf ? plainTexts : anything;
  const list = checkList(keywords, free, compileAt, ofTexts);
  const members = checkMembers(keywords, free, compileAt);
  const anyOf = checkAnyOf(keywords, compileAt);

  const check: Check = (given, at, errors) => {
    // A text that `read` has left alone gets its meaning from the alternatives.
    const isOpen = ofTexts && textsOf(given) !== undefined;
    const value = isOpen ? anyOf(given, at, errors) : given;
    if (!hasType(value)) return fail(errors, at, typeDetail);
    let parsed = value;
    if (typeof value === "string") text(value, at, errors);
    else if (typeof value === "number") number(value, at, errors);
    else if (Array.isArray(value)) parsed = list(value, at, errors);
    else if (isRecord(value)) parsed = members(value, at, errors);
    const key = lists.length === 0 ? undefined : keyOf(ofTexts ? parsed : value);
    for (const { keys, detail } of lists) if (!keys.has(key)) fail(errors, at, detail);
    return isOpen ? parsed : anyOf(parsed, at, errors);
  };
  const isListed = (value: unknown) => lists.some(({ keys }) => keys.has(keyOf(value)));
  const read = types.includes("array") ? separate
    : types.length + lists.length === 0 && keywords.anyOf ? anything
    : (value: unknown) => convertText(value, isListed, hasType);
  const compiled: Compiled = !ofTexts ? { check, hasType } : {
    check(value, at, errors) {
      const meant = read(value);
      if (Array.isArray(meant) && !hasType(meant)) return fail(errors, at, "Must be given once.");
      return check(meant, at, errors);
    },
    hasType: (value) => hasType(read(value)),
  };
  if (keywords.default === undefined) return compiled;
  const parsed = checkWhole(check, keywords.default, below(report, "default"));
  return { ...compiled, fallback: JSON.stringify(parsed) };
}

/** Compiles a schema at a path below the current one. */
type CompileAt = (inner: unknown, ...path: readonly PropertyKey[]) => Compiled;

/** The values of `enum` and of `const`, for each that the schema has. */
function listValues(keywords: Keywords) {
  return [keywords.enum ?? [], keywords.const === undefined ? [] : [keywords.const]]
    .filter((values) => values.length > 0)
    .map((values) => {
      const all = values.map((value) => typeof value === "string" ? value : JSON.stringify(value))
        .join(", ");
      const detail = `Must be one of: ${all.length > 200 ? `${all.slice(0, 200)} …` : all}.`;
      return { keys: new Set(values.map(keyOf)), detail };
    });
}

function checkText(keywords: Keywords, report: Report): Check<string> {
  const { minLength = 0, maxLength = Infinity, pattern, format = "" } = keywords;
  const wrong = pattern === undefined ? undefined : checkPattern(pattern, maxLength);
  if (wrong !== undefined) report(wrong, "/pattern");
  const isTried = pattern !== undefined && wrong === undefined;
  const patternDetail = `Must match the pattern ${pattern}`;
  const expression = isTried ? new RegExp(pattern, "u") : undefined;
  const [hasFormat, what] = FORMATS[format] ?? [];
  return (text, at, errors) => {
    // A character has one or two code units, so that most texts need no counting.
    const isClear = text.length >= 2 * minLength &&
      (text.length <= maxLength || text.length > 2 * maxLength);
    const length = isClear ? text.length : [...text].length;
    if (length < minLength) fail(errors, at, `Must have at least ${minLength} characters.`);
    else if (length > maxLength) fail(errors, at, `Must have at most ${maxLength} characters.`);
    else if (expression?.test(text) === false) fail(errors, at, patternDetail);
    else if (hasFormat?.(text) === false) fail(errors, at, `Must be ${what}.`);
  };
}

function checkNumber({ multipleOf, ...keywords }: Keywords): Check<number> {
  const { minimum = -Infinity, maximum = Infinity } = keywords;
  const { exclusiveMinimum: above = -Infinity, exclusiveMaximum: below = Infinity } = keywords;
  return (value, at, errors) => {
    if (value < minimum) fail(errors, at, `Must be at least ${minimum}.`);
    if (value > maximum) fail(errors, at, `Must be at most ${maximum}.`);
    if (value <= above) fail(errors, at, `Must be more than ${above}.`);
    if (value >= below) fail(errors, at, `Must be less than ${below}.`);
    if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
      fail(errors, at, `Must be a multiple of ${multipleOf}.`);
    }
  };
}

/** In doubles 19.99 is no multiple of 0.01, but it must count as one. */
function isMultiple(value: number, of: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(of)) return value % of === 0;
  const quotient = value / of;
  // Three roundings: of the value, of the divisor and of the quotient.
  const error = 2 * Number.EPSILON * Math.abs(quotient);
  return error === Infinity || Math.abs(quotient - Math.round(quotient)) <= error;
}

function checkList(
  { minItems = 0, maxItems = Infinity, uniqueItems = false, items }: Keywords,
  free: Check,
  compileAt: CompileAt,
  ofTexts: boolean,
): Check<readonly unknown[]> {
  const item = items === undefined ? free : compileAt(items, "items").check;
  return (list, at, errors) => {
    if (list.length < minItems) fail(errors, at, `Must have at least ${minItems} items.`);
    if (list.length > maxItems) return fail(errors, at, `Must have at most ${maxItems} items.`);
    const seen = new Set<unknown>();
    let changed: unknown[] | undefined;
    for (let index = 0; index < list.length && errors.length < LIST_LIMIT; index++) {
      const value: unknown = list[index];
      const parsed = item(value, `${at}/${index}`, errors);
      if (parsed !== value) (changed ??= [...list])[index] = parsed;
      // Texts are compared by meaning, other values as they came: without their defaults.
      const key = uniqueItems && keyOf(ofTexts ? plainTexts(parsed ?? value) : value);
      if (uniqueItems && seen.size === seen.add(key).size) {
        fail(errors, `${at}/${index}`, "Must be unique.");
      }
    }
    return changed ?? list;
  };
}

function checkMembers(
  { properties = {}, required = [], additionalProperties = true }: Keywords,
  free: Check,
  compileAt: CompileAt,
): Check<Readonly<Record<string, unknown>>> {
  const check = isRecord(additionalProperties)
    ? compileAt(additionalProperties, "additionalProperties").check
    : additionalProperties ? free : unknownMember;
  const more: Omit<Compiled, "hasType"> = { check };
  const names = new Set([...Object.keys(properties), ...required]);
  const members = [...names].map((name) => ({
    name,
    token: pointerTo([name]),
    isRequired: required.includes(name),
    ...Object.hasOwn(properties, name) ? compileAt(properties[name], "properties", name) : more,
  }));
  return (value, at, errors) => {
    const changes: [string, unknown][] = [];
    for (const { name, token, check, fallback, isRequired } of members) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      if (given !== undefined) {
        const parsed = check(given, at + token, errors);
        if (parsed !== given) changes.push([name, parsed]);
      } else if (fallback !== undefined) changes.push([name, JSON.parse(fallback)]);
      else if (isRequired) fail(errors, at + token, "Is required.");
    }
    for (const name of more.check === anything ? [] : Object.keys(value)) {
      if (errors.length === LIST_LIMIT) break;
      const given = value[name];
      if (names.has(name) || given === undefined) continue;
      const parsed = more.check(given, at + pointerTo([name]), errors);
      if (parsed !== given) changes.push([name, parsed]);
    }
    return changes.length === 0 ? value : { ...value, ...Object.fromEntries(changes) };
  };
}

function checkAnyOf({ anyOf = [] }: Keywords, compileAt: CompileAt): Check {
  const all = anyOf.map((inner, index) => compileAt(inner, "anyOf", index));
  if (all.length === 0) return anything;
  const wrong = `Must fit one of ${all.length} alternatives.`;
  return (value, at, errors) => {
    const [near, ...others] = all.filter(({ hasType }) => hasType(value));
    // Where only one alternative has the value's type, its own errors say more.
    if (near && others.length === 0) return near.check(value, at, errors);
    for (const { check } of near ? [near, ...others] : []) {
      const trial: Errors = [];
      const parsed = check(value, at, trial);
      if (trial.length === 0) return parsed;
    }
    return fail(errors, at, wrong);
  };
}

function fail(errors: Errors, pointer: string, detail: string): void {
  if (errors.length < LIST_LIMIT) errors.push({ pointer, detail });
}

/** Returns equal keys for values that are equal as JSON, in whatever order their members are. */
function keyOf(value: unknown): unknown {
  if (typeof value === "string") return `"${value}`;
  if (typeof value !== "object" || value === null) return value;
  return JSON.stringify(value, (_name, each: unknown) =>
    isRecord(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => one < other ? -1 : 1))
      : each
  );
}
