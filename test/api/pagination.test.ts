import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { idOf, newId } from "../../src/base/id.ts";
import { named, record, TEXT } from "../../src/base/shape.ts";
import { readQuery } from "../../src/api/input.ts";
import { listingOf, pageOf, pagination, toPageRecord } from "../../src/api/pagination.ts";
import { backendCaller, sampleRequest } from "../helpers/http_request.ts";
import { pointersOf } from "../helpers/problem.ts";

const ID = newId("u", Date.UTC(2026, 0, 1));
const USER = idOf("u");
const ITEM = named("Item", record({ name: TEXT }));
const read = (query: string) => parsed(readQuery(query, pagination(USER)));
const parsed = ({ limit, cursor }: Record<string, unknown>) =>
  ({ limit: Number(limit), cursor: cursor === undefined ? undefined : String(cursor) });

describe("the query of a list is read:", () => {
  const table: [query: string, limit: number, cursor?: string][] = [
    ["", 50],
    ["limit=1", 1],
    ["limit=200", 200],
    [`cursor=${ID}`, 50, ID],
    [`limit=7&cursor=${ID}`, 7, ID],
    ["limit=&cursor=", 50],
    ["other=1&limit=3", 3],
  ];
  for (const [query, limit, cursor] of table) {
    test(JSON.stringify(query), () => assert.deepEqual(read(query), { limit, cursor }));
  }
});

describe("the query of a list is refused, and the parameter named, for", () => {
  const table: [query: string, pointers: string[]][] = [
    ["limit=0", ["/limit"]],
    ["limit=201", ["/limit"]],
    ["limit=-1", ["/limit"]],
    ["limit=1.5", ["/limit"]],
    ["limit=1e2", ["/limit"]],
    ["limit=0x10", ["/limit"]],
    ["limit=ten", ["/limit"]],
    ["limit=+5", ["/limit"]],
    ["limit=9999999999999999999999", ["/limit"]],
    ["limit=5&limit=6", ["/limit"]],
    ["cursor=%7E", ["/cursor"]],
    ["cursor=A", ["/cursor"]],
    ["cursor=a%00", ["/cursor"]],
    [`cursor=${"a".repeat(65)}`, ["/cursor"]],
    [`cursor=${newId("a", 0)}`, ["/cursor"]],
    ["limit=0&cursor=-", ["/limit", "/cursor"]],
  ];
  for (const [query, pointers] of table) {
    test(query, () => assert.deepEqual(pointersOf(() => read(query)), pointers));
  }
});

describe("listingOf()", () => {
  const ITEMS = ["c", "b", "a"].map((name) => ({ name }));
  const page = async (items: typeof ITEMS, limit: number, cursor: string | null = "") =>
    listingOf(ITEM, ({ name }) => name, "down", () => items).handle({
      request: sampleRequest(),
      params: {},
      caller: backendCaller(0),
      query: parsed(readQuery(`limit=${limit}&cursor=${cursor}`, pagination())),
      body: undefined,
      authenticateAgain: () => undefined,
    });

  test("returns a list in memory page by page", async () => {
    const first = await page(ITEMS, 2);
    assert.deepEqual(first.items, ITEMS.slice(0, 2));
    const second = await page(ITEMS, 2, first.next_cursor);
    assert.deepEqual(second, { items: ITEMS.slice(2), next_cursor: null });
  });
  test("gives no cursor at the end, or for an empty list", async () => {
    assert.equal((await page(ITEMS, 3)).next_cursor, null);
    assert.deepEqual(await page([], 3), { items: [], next_cursor: null });
  });
  test("continues at the cursor although earlier items were removed or added", async () => {
    const { next_cursor: next } = await page(ITEMS, 2);
    assert.deepEqual((await page(ITEMS.slice(1), 2, next)).items, ITEMS.slice(2));
    assert.deepEqual((await page([{ name: "d" }, ...ITEMS], 2, next)).items, ITEMS.slice(2));
  });
  test("continues at the cursor although its own item was removed", async () => {
    const { next_cursor: next } = await page(ITEMS, 2);
    assert.deepEqual((await page([{ name: "c" }, { name: "a" }], 2, next)).items, [{ name: "a" }]);
    assert.deepEqual((await page([{ name: "a" }], 2, next)).items, [{ name: "a" }]);
  });
  test("gives cursors that a query accepts", async () => {
    const { next_cursor: next } = await page([{ name: "Not/[a-z]" }, { name: "A" }], 1);
    const query = readQuery(`cursor=${next}`, pagination());
    assert.deepEqual(query, { limit: 50, cursor: "Not/[a-z]" });
  });
  test("refuses a cursor that it cannot have given", async () => {
    for (const cursor of ["zz", "c", "C3A9", "ff", "61".repeat(131)]) {
      const refused = await page(ITEMS, 2, cursor).catch((error: unknown) => error);
      assert.deepEqual(pointersOf(() => {
        throw refused;
      }), ["/cursor"], cursor);
    }
  });
});

test("pageOf() names the schema of a page after its items", () => {
  const shape = pageOf(named("Ship", record({ id: USER })));
  assert.deepEqual(shape.schema, { $ref: "#/components/schemas/ShipPage" });
  assert.deepEqual(Object.keys(shape.definitions).toSorted(), ["Ship", "ShipPage"]);
});

test("toPageRecord() returns the items and the next cursor, or null", () => {
  const items = [{ id: "u2" }, { id: "u1" }];
  const shown = (next: string | undefined) =>
    toPageRecord({ items, next }, ({ id }) => ({ sub: id }));
  assert.deepEqual(shown("u1"), { items: [{ sub: "u2" }, { sub: "u1" }], next_cursor: "u1" });
  assert.deepEqual(shown(undefined), { items: [{ sub: "u2" }, { sub: "u1" }], next_cursor: null });
});
