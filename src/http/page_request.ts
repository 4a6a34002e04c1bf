import type { HttpAnswer, HttpRequest } from "../base/exchange.ts";
import { parseForm } from "../base/form.ts";
import { Problem } from "../base/problem.ts";
import { firstPage, type Page, type PageRequest } from "../store/database.ts";
import { jsonAnswer } from "./respond.ts";

const MAX_LIMIT = 200;
const DEFAULT_LIMIT = 50;

/** The parameters of a query; throws Problem 400 when it is not well-formed. */
export function readQuery(request: HttpRequest): { get(name: string): string | undefined } {
  const query = parseForm(request.query);
  if (!query) throw new Problem(400, "malformed", "The query is not well-formed.");
  return query;
}

/** Which part of a list a request asks for: `?limit=` (1 to 200) and `&cursor=`. */
export function readPage(request: HttpRequest): PageRequest {
  const query = readQuery(request);
  const text = query.get("limit");
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text);
  const cursor = query.get("cursor");
  const errors = [
    ...Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT && /^\d+$/.test(text ?? "1")
      ? []
      : [{ pointer: "/limit", detail: `Must be 1 to ${MAX_LIMIT}.` }],
    ...cursor === undefined || /^[0-9a-z]{1,64}$/.test(cursor)
      ? []
      : [{ pointer: "/cursor", detail: "Must be a next_cursor of this list." }],
  ];
  if (errors.length > 0) {
    throw new Problem(400, "invalid", "The query is not valid; see errors.", { errors });
  }
  return { limit, before: cursor ?? firstPage };
}

/** A part of a list as it goes out. */
export function listAnswer<Item>(
  page: Page<Item>,
  toRecord: (item: Item) => Record<string, unknown>,
): HttpAnswer {
  return jsonAnswer(200, {
    items: page.items.map(toRecord),
    next_cursor: page.next ?? null,
  });
}
