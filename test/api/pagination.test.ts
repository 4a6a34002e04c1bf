import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { Problem } from "../../src/base/problem.ts";
import {
  checkId,
  checkWord,
  listResponse,
  readFilteredPagination,
  readPagination,
  readQuery,
} from "../../src/api/pagination.ts";
import { FIRST_PAGE } from "../../src/database/database.ts";
import { sampleRequest } from "../helpers/http_request.ts";

const ID = newId("u", Date.UTC(2026, 0, 1));
const ask = (query: string) => sampleRequest({ query });

describe("readPagination() reads (contract 2)", () => {
  const table: [query: string, limit: number, before: string][] = [
    ["", 50, FIRST_PAGE],
    ["limit=1", 1, FIRST_PAGE],
    ["limit=200", 200, FIRST_PAGE],
    [`cursor=${ID}`, 50, ID],
    [`limit=7&cursor=${ID}`, 7, ID],
    ["limit=&cursor=", 50, FIRST_PAGE],
    ["other=1&limit=3", 3, FIRST_PAGE],
  ];
  for (const [query, limit, before] of table) {
    test(JSON.stringify(query), () => assert.deepEqual(readPagination(ask(query)), { limit, before }));
  }
});

describe("readPagination() refuses, and names the parameter, for", () => {
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
    ["limit=0&cursor=-", ["/limit", "/cursor"]],
  ];
  for (const [query, pointers] of table) {
    test(query, () => assert.deepEqual(pointersOf(() => readPagination(ask(query))), pointers));
  }
});

test("readQuery() refuses a query that is broken with 400", () => {
  for (const query of ["a=%", "a=%zz", "a=%ff", "\u00fc=1"]) {
    assert.throws(() => readQuery(ask(query)), (error: unknown) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.status, 400);
      return true;
    });
  }
  assert.equal(readQuery(ask("a=b+c")).get("a"), "b c");
});

test("readFilteredPagination() reads the list's own parameters, and leaves out what is not there", () => {
  const filters = { user: checkId("u"), status: checkWord(["pending", "failed"]) };
  const { page, filter } = readFilteredPagination(ask(`user=${ID}&limit=2`), filters);
  assert.deepEqual(filter, { user: ID });
  assert.equal(page.limit, 2);
  assert.deepEqual(readFilteredPagination(ask("status=failed"), filters).filter, { status: "failed" });
});

test("readFilteredPagination() names every fault at once", () => {
  const filters = { user: checkId("u"), status: checkWord(["pending", "failed"]) };
  const query = `user=a1&status=FAILED&status=failed&limit=0`;
  const pointers = pointersOf(() => readFilteredPagination(ask(query), filters));
  assert.deepEqual(pointers, ["/limit", "/user", "/status"]);
  assert.deepEqual(pointersOf(() => readFilteredPagination(ask("status=x"), filters)), ["/status"]);
});

test("listResponse() has the items and where the next part begins, or null", async () => {
  const items = [{ id: "u2" }, { id: "u1" }];
  const read = (next: string | undefined) => {
    const { status, headers, body } = listResponse({ items, next }, ({ id }) => ({ sub: id }));
    assert.equal(status, 200);
    assert.equal(headers?.["Content-Type"], "application/json");
    return JSON.parse(String(body)) as unknown;
  };
  assert.deepEqual(read("u1"), { items: [{ sub: "u2" }, { sub: "u1" }], next_cursor: "u1" });
  assert.deepEqual(read(undefined), { items: [{ sub: "u2" }, { sub: "u1" }], next_cursor: null });
});

function pointersOf(run: () => unknown): string[] {
  try {
    run();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    assert.equal(error.code, "invalid");
    return error.errors.map(({ pointer }) => pointer);
  }
}
