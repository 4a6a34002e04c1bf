import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import { parseShape, type Shape } from "../../src/base/shape.ts";
import { SCOPES } from "../../src/oauth/scope.ts";
import { NewUser, toUserRecord, UserChange } from "../../src/oauth/user.ts";
import { pointersOf } from "../helpers/problem.ts";

const parseNewUser = (value: unknown) => parseShape(NewUser, value, "body");
const parseUserChange = (value: unknown) => parseShape(UserChange, value, "body");
const { username: USERNAME, password: PASSWORD } = NewUser.members;

function accepts(shape: Shape<unknown>, value: unknown): boolean {
  return pointersOf(() => parseShape(shape, value, "body")).length === 0;
}

describe("a user name", () => {
  const table: [what: string, name: string, isGood: boolean][] = [
    ["accepts one letter", "a", true],
    ["accepts every allowed character", "AZaz09._@+-", true],
    ["accepts an e-mail address", "marta.o+x@orders.example", true],
    ["accepts 64 characters", "a".repeat(64), true],
    ["refuses 65 characters", "a".repeat(65), false],
    ["refuses an empty name", "", false],
    ["refuses a space", "a b", false],
    ["refuses a final space", "a ", false],
    ["refuses a final line feed", "a\n", false],
    ["refuses a NUL", "a\u0000", false],
    ["refuses a slash", "a/b", false],
    ["refuses a colon, which ends a name in Basic", "a:b", false],
    ["refuses markup", "<b>", false],
    ["refuses an umlaut", "\u00fc", false],
    ["refuses a letter that looks like another", "\u0430dmin", false],
    ["refuses a sign that case folding turns into a letter", "\u212a", false],
  ];
  for (const [what, name, isGood] of table) {
    test(what, () => assert.equal(accepts(USERNAME, name), isGood));
  }
});

describe("a password's length is counted in UTF-8 bytes:", () => {
  const table: [what: string, password: string, isGood: boolean][] = [
    ["8", "x".repeat(8), true],
    ["7", "x".repeat(7), false],
    ["0", "", false],
    ["8 in 4 characters", "\u00fc".repeat(4), true],
    ["6 in 3 characters", "\u00fc".repeat(3), false],
    ["1,024", "x".repeat(1024), true],
    ["1,025", "x".repeat(1025), false],
    ["1,024 in 512 characters", "\u00fc".repeat(512), true],
    ["1,026 in 513 characters", "\u00fc".repeat(513), false],
    ["8 spaces", " ".repeat(8), true],
  ];
  for (const [what, password, isGood] of table) {
    const name = `${isGood ? "accepts" : "refuses"} ${what}`;
    test(name, () => assert.equal(accepts(PASSWORD, password), isGood));
  }
});

test("a scope with a comma, or against RFC 6749 §3.3, is refused", () => {
  assert.equal(accepts(SCOPES, ["orders:read"]), true);
  for (const name of ["", "a b", "a,b", 'a"', "a\\", "\u00fc", "a".repeat(65)]) {
    assert.equal(accepts(SCOPES, [name]), false, name);
  }
});

test("NewUser reads name, password and scopes", () => {
  const value = { username: "marta", password: "correct horse", scopes: ["a", "b", "a"] };
  assert.deepEqual(parseNewUser(value), { ...value, scopes: ["a", "b"] });
});

test("NewUser gets scope `consumer` if no scopes are given, and none for an empty list", () => {
  const value = { username: "marta", password: "correct horse" };
  assert.deepEqual(parseNewUser(value).scopes, ["consumer"]);
  assert.deepEqual(parseNewUser({ ...value, scopes: [] }).scopes, []);
});

describe("NewUser names each error of", () => {
  const good = { username: "marta", password: "correct horse" };
  const table: [what: string, value: unknown, pointers: string[]][] = [
    ["a value that is no object", [], [""]],
    ["an empty object", {}, ["/username", "/password"]],
    ["everything at once", { username: "a b", password: "x", scopes: ["a b", 1], status: "active" },
      ["/username", "/password", "/scopes/0", "/scopes/1", "/status"]],
    ["a password that is a number", { ...good, password: 12345678 }, ["/password"]],
    ["scopes that are a string", { ...good, scopes: "consumer" }, ["/scopes"]],
    ["an id", { ...good, id: "u1" }, ["/id"]],
  ];
  for (const [what, value, pointers] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => parseNewUser(value)), pointers));
  }
});

test("UserChange has only the given members", () => {
  assert.deepEqual(parseUserChange({}), {});
  const change = { status: "disabled", scopes: [] };
  assert.deepEqual(parseUserChange(change), change);
});

describe("UserChange names each error of", () => {
  const table: [what: string, value: unknown, pointers: string[]][] = [
    ["a new name, which is fixed", { username: "otto" }, ["/username"]],
    ["a short password", { password: "short" }, ["/password"]],
    ["null, which removes nothing", { password: null, scopes: null, status: null },
      ["/password", "/scopes", "/status"]],
    ["an unknown status", { status: "deleted" }, ["/status"]],
    ["a bad scope", { scopes: ["a,b"] }, ["/scopes/0"]],
  ];
  for (const [what, value, pointers] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => parseUserChange(value)), pointers));
  }
});

test("an error does not repeat the password", () => {
  try {
    parseNewUser({ username: "a b", password: "hunter2" });
    assert.fail("it was accepted");
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.doesNotMatch(JSON.stringify([error.message, error.errors]), /hunter2/);
  }
});

test("toUserRecord() shows the fields of the record, and no password hash", () => {
  const user = {
    id: "u0",
    username: "marta",
    scopes: ["consumer"],
    rate: "5/1m",
    status: "active",
    createdAtMs: 0,
    notBeforeMs: 5,
    phc: "$phc",
  } as const;
  assert.deepEqual(toUserRecord(user), {
    id: "u0",
    username: "marta",
    scopes: ["consumer"],
    rate: "5/1m",
    status: "active",
    created_at: "1970-01-01T00:00:00.000Z",
  });
});
