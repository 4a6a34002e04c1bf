import type { HttpResponse, HttpRequest } from "../base/exchange.ts";
import type { Check } from "../base/fields.ts";
import { type Form, parseForm } from "../base/form.ts";
import { isId } from "../base/id.ts";
import { checkErrors, type FieldError, Problem } from "../base/problem.ts";
import { FIRST_PAGE, type Page, type Pagination } from "../database/database.ts";
import { jsonResponse, NO_STORE } from "../http/respond.ts";

/** How many items a list answers at most, and where nothing is said. */
export const MAX_LIMIT = 200;
export const DEFAULT_LIMIT = 50;

/** What every next_cursor is. */
export const CURSOR = /^[0-9a-z]{1,64}$/;

/** The parameters of a query; throws Problem 400 when it is not well-formed. */
export function readQuery(request: HttpRequest): Form {
  const query = parseForm(request.query);
  if (!query) throw new Problem(400, "malformed", "The query is not well-formed.");
  return query;
}

/** Which part of a list a request asks for: `?limit=` (1 to 200) and `&cursor=`. */
export function readPagination(request: HttpRequest): Pagination {
  return readFilteredPagination(request, {}).page;
}

/**
 * Which part of a list a request asks for, and the list's own parameters, each with the check of
 * its value. Throws Problem 400 that names every fault.
 */
export function readFilteredPagination<Name extends string>(
  request: HttpRequest,
  filters: Readonly<Record<Name, Check>>,
): { readonly page: Pagination; readonly filter: Readonly<Partial<Record<Name, string>>> } {
  const query = readQuery(request);
  const errors: FieldError[] = [];
  const filter: Partial<Record<Name, string>> = {};
  const read = (name: string, check: Check): string | undefined => {
    const value = query.get(name);
    const wrong = query.duplicates.includes(name)
      ? "Must be given once."
      : value === undefined ? undefined : check(value);
    if (wrong !== undefined) errors.push({ pointer: `/${name}`, detail: wrong });
    return value;
  };
  const limit = read("limit", checkLimit);
  const before = read("cursor", checkCursor) ?? FIRST_PAGE;
  for (const [name, check] of Object.entries<Check>(filters)) {
    const value = read(name, check);
    if (value !== undefined) filter[name as Name] = value;
  }
  checkErrors(errors, "query");
  return { page: { limit: limit === undefined ? DEFAULT_LIMIT : Number(limit), before }, filter };
}

const checkLimit: Check = (text) =>
  /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_LIMIT
    ? undefined
    : `Must be 1 to ${MAX_LIMIT}.`;

const checkCursor: Check = (text) =>
  CURSOR.test(text) ? undefined : "Must be a next_cursor of this list.";

/** A check that the value is one of the words. */
export function checkWord(words: readonly string[]): Check {
  return (text) => words.includes(text) ? undefined : `Must be one of: ${words.join(", ")}.`;
}

/** A check that the value has the form of an id of this kind (base/id.ts). */
export function checkId(kind: string): Check {
  return (text) => isId(kind, text) ? undefined : "Must be an id.";
}

/** Says what is wrong with a time: RFC 3339 §5.6, as in JSON and in queries. */
export const checkTime: Check = (text) => {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i.test(text) &&
    !Number.isNaN(Date.parse(text));
  return isTime ? undefined : "Must be a time as in 2030-01-31T12:00:00Z.";
};

/** A part of a list as it goes out. */
export function listResponse<Item>(
  page: Page<Item>,
  toRecord: (item: Item) => Record<string, unknown>,
): HttpResponse {
  return jsonResponse(200, {
    items: page.items.map(toRecord),
    next_cursor: page.next ?? null,
  }, NO_STORE);
}
