import { checkPattern } from "./pattern.ts";
import { FORMATS, KEYWORDS, type Keywords, TYPES } from "./schema_keywords.ts";
import { below, isRecord, LIST_LIMIT, pointerTo, type Report, type Shape } from "./shape.ts";

/** One look at a value: where it is at, and how many errors may still be reported. */
interface Run {
  readonly path: PropertyKey[];
  readonly report: Report;
  left: number;
}

/** Returns the value with its defaults; what is wrong is reported. */
type Check<T = unknown> = (value: T, run: Run) => unknown;

interface Compiled {
  readonly check: Check;
  /** Whether a value is of the schema's types. */
  readonly hasType: (value: unknown) => boolean;
  /** The default as JSON, since each value gets one of its own. */
  readonly fallback?: string;
}

const MAX_DEPTH = 32;
const anything: Check = (value) => value;
const unknownMember: Check = (_value, run) => fail(run, "Unknown member.");

/**
 * Makes a shape of a JSON Schema (2020-12); mod/schema.ts has the keywords. What is wrong with the
 * schema is reported. Members of a value that are undefined count as missing. Strings are measured
 * in characters.
 */
export function toShape(schema: unknown, report: Report): Shape<unknown> {
  const { check } = compile(schema, report, []);
  return {
    schema: isRecord(schema) ? schema : {},
    definitions: {},
    parse(value, report) {
      if (value !== undefined) return check(value, { path: [], report, left: LIST_LIMIT });
      report("Is required.");
      return undefined;
    },
  };
}

/** @param above the schemas that it is in */
function compile(schema: unknown, report: Report, above: readonly unknown[]): Compiled {
  const wrong = !isRecord(schema)
    ? "Must be a JSON Schema or a Standard Schema."
    : above.includes(schema)
    ? "Is in itself: no schema is recursive."
    : above.length === MAX_DEPTH
    ? `Is deeper than ${MAX_DEPTH} schemas.`
    : undefined;
  if (wrong !== undefined) {
    report(wrong);
    return { check: anything, hasType: () => true };
  }
  const keywords = KEYWORDS.parse(schema, report);
  const compileAt: CompileAt = (inner, ...path) =>
    compile(inner, below(report, ...path), [...above, schema]);
  const types = [keywords.type ?? []].flat();
  const kinds = types.flatMap((type) => TYPES[type] ? [TYPES[type]] : []);
  const typeDetail = `Must be ${kinds.map(([, what]) => what).join(" or ")}.`;
  const [[isOfOne] = [() => true], ...others] = kinds;
  const hasType = others.length === 0
    ? isOfOne
    : (value: unknown) => kinds.some(([isOf]) => isOf(value));
  const values = checkValues(keywords);
  const text = checkText(keywords, report);
  const number = checkNumber(keywords);
  const list = checkList(keywords, compileAt);
  const members = checkMembers(keywords, compileAt);
  const anyOf = checkAnyOf(keywords, compileAt);

  const check: Check = (value, run) => {
    if (!hasType(value)) return fail(run, typeDetail);
    values(value, run);
    let parsed = value;
    if (typeof value === "string") text(value, run);
    else if (typeof value === "number") number(value, run);
    else if (Array.isArray(value)) parsed = list(value, run);
    else if (isRecord(value)) parsed = members(value, run);
    return anyOf(parsed, run);
  };
  if (keywords.default === undefined) return { check, hasType };
  const run: Run = { path: [], report: below(report, "default"), left: LIST_LIMIT };
  const parsed = check(keywords.default, run);
  return { check, hasType, fallback: JSON.stringify(parsed) };
}

/** Compiles a schema at a path below the one that is at hand. */
type CompileAt = (inner: unknown, ...path: readonly PropertyKey[]) => Compiled;

function checkValues(keywords: Keywords): Check {
  const lists = [keywords.enum ?? [], keywords.const === undefined ? [] : [keywords.const]]
    .filter((values) => values.length > 0)
    .map((values) => {
      const all = values.map((value) => typeof value === "string" ? value : JSON.stringify(value))
        .join(", ");
      const detail = `Must be one of: ${all.length > 200 ? `${all.slice(0, 200)} …` : all}.`;
      return { keys: new Set(values.map(keyOf)), detail };
    });
  return (value, run) => {
    for (const { keys, detail } of lists) if (!keys.has(keyOf(value))) fail(run, detail);
  };
}

function checkText(keywords: Keywords, report: Report): Check<string> {
  const { minLength = 0, maxLength = Infinity, pattern, format = "" } = keywords;
  const wrong = pattern === undefined ? undefined : checkPattern(pattern, maxLength);
  if (wrong !== undefined) report(wrong, "/pattern");
  const isTried = pattern !== undefined && wrong === undefined;
  const expression = isTried ? new RegExp(pattern, "u") : undefined;
  const [hasFormat, what] = FORMATS[format] ?? [];
  return (text, run) => {
    // A character has one or two code units: most texts need no counting.
    const isClear = text.length >= 2 * minLength &&
      (text.length <= maxLength || text.length > 2 * maxLength);
    const length = isClear ? text.length : [...text].length;
    if (length < minLength) fail(run, `Must have at least ${minLength} characters.`);
    else if (length > maxLength) fail(run, `Must have at most ${maxLength} characters.`);
    else if (expression?.test(text) === false) fail(run, `Must match the pattern ${pattern}`);
    else if (hasFormat?.(text) === false) fail(run, `Must be ${what}.`);
  };
}

function checkNumber(keywords: Keywords): Check<number> {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = keywords;
  type Rule = [limit: number | undefined, isRight: (n: number, limit: number) => boolean, string];
  const rules: Rule[] = [
    [minimum, (n, limit) => n >= limit, "at least"],
    [maximum, (n, limit) => n <= limit, "at most"],
    [exclusiveMinimum, (n, limit) => n > limit, "more than"],
    [exclusiveMaximum, (n, limit) => n < limit, "less than"],
    [multipleOf, isMultiple, "a multiple of"],
  ];
  const given = rules.flatMap(([limit, isRight, what]) =>
    limit === undefined ? [] : [{ limit, isRight, detail: `Must be ${what} ${limit}.` }]
  );
  return (value, run) => {
    for (const { limit, isRight, detail } of given) if (!isRight(value, limit)) fail(run, detail);
  };
}

/** 19.99 is meant to be a multiple of 0.01, though doubles do not say so. */
function isMultiple(value: number, of: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(of)) return value % of === 0;
  const quotient = value / of;
  return Math.abs(quotient - Math.round(quotient)) <= Number.EPSILON * Math.abs(quotient);
}

function checkList(keywords: Keywords, compileAt: CompileAt): Check<readonly unknown[]> {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, items } = keywords;
  const item = items === undefined ? anything : compileAt(items, "items").check;
  return (list, run) => {
    if (list.length < minItems) fail(run, `Must have at least ${minItems} items.`);
    if (list.length > maxItems) return fail(run, `Must have at most ${maxItems} items.`);
    const seen = new Set<unknown>();
    let changed: unknown[] | undefined;
    for (let index = 0; index < list.length && run.left > 0; index++) {
      const value: unknown = list[index];
      const parsed = checkAt(index, item, value, run);
      if (parsed !== value) (changed ??= [...list])[index] = parsed;
      if (uniqueItems && seen.size === seen.add(keyOf(value)).size) {
        fail(run, "Must not be there twice.", index);
      }
    }
    return changed ?? list;
  };
}

function checkMembers(
  { properties = {}, required = [], additionalProperties = true }: Keywords,
  compileAt: CompileAt,
): Check<Readonly<Record<string, unknown>>> {
  const members = Object.entries(properties).map(([name, inner]) =>
    ({ name, isRequired: required.includes(name), ...compileAt(inner, "properties", name) })
  );
  const others = required.filter((name) => !Object.hasOwn(properties, name));
  const more = isRecord(additionalProperties)
    ? compileAt(additionalProperties, "additionalProperties").check
    : additionalProperties === true
    ? anything
    : unknownMember;
  return (value, run) => {
    const changes: [string, unknown][] = [];
    for (const { name, check, fallback, isRequired } of members) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      if (given !== undefined) {
        const parsed = checkAt(name, check, given, run);
        if (parsed !== given) changes.push([name, parsed]);
      } else if (fallback !== undefined) changes.push([name, JSON.parse(fallback)]);
      else if (isRequired) fail(run, "Is required.", name);
    }
    for (const name of others) {
      if (!Object.hasOwn(value, name) || value[name] === undefined) fail(run, "Is required.", name);
    }
    for (const name of more === anything ? [] : Object.keys(value)) {
      if (run.left === 0) break;
      const given = value[name];
      if (Object.hasOwn(properties, name) || given === undefined) continue;
      const parsed = checkAt(name, more, given, run);
      if (parsed !== given) changes.push([name, parsed]);
    }
    return changes.length === 0 ? value : { ...value, ...Object.fromEntries(changes) };
  };
}

function checkAnyOf({ anyOf = [] }: Keywords, compileAt: CompileAt): Check {
  const all = anyOf.map((inner, index) => compileAt(inner, "anyOf", index));
  if (all.length === 0) return anything;
  const wrong = `Must fit one of ${all.length} alternatives.`;
  return (value, run) => {
    const [near, ...others] = all.filter(({ hasType }) => hasType(value));
    // One that alone has the type is meant: its errors say more.
    if (near && others.length === 0) return near.check(value, run);
    for (const { check } of near ? [near, ...others] : []) {
      const trial: Run = { path: [], report: () => {}, left: 1 };
      const parsed = check(value, trial);
      if (trial.left === 1) return parsed;
    }
    return fail(run, wrong);
  };
}

function checkAt(name: PropertyKey, check: Check, value: unknown, run: Run): unknown {
  run.path.push(name);
  const parsed = check(value, run);
  run.path.pop();
  return parsed;
}

function fail(run: Run, detail: string, ...name: PropertyKey[]): void {
  if (run.left === 0) return;
  run.left--;
  run.report(detail, pointerTo([...run.path, ...name]));
}

/** The same for values that are the same as JSON, whatever the order of their members. */
function keyOf(value: unknown): unknown {
  if (typeof value === "string") return `"${value}`;
  if (typeof value !== "object" || value === null) return value;
  return JSON.stringify(value, (_name, each: unknown) =>
    isRecord(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => one < other ? -1 : 1))
      : each
  );
}
