import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import {
  checkPassword,
  checkScopeName,
  checkUsername,
  parseNewUser,
  parseUserChange,
} from "../../src/oauth/user.ts";

describe("checkUsername() (contract 3)", () => {
  const table: [what: string, name: string, isGood: boolean][] = [
    ["takes one letter", "a", true],
    ["takes every allowed character", "AZaz09._@+-", true],
    ["takes an e-mail address", "marta.o+x@orders.example", true],
    ["takes 64 characters", "a".repeat(64), true],
    ["refuses 65", "a".repeat(65), false],
    ["refuses nothing", "", false],
    ["refuses a space", "a b", false],
    ["refuses a space behind", "a ", false],
    ["refuses a line feed behind", "a\n", false],
    ["refuses a NUL", "a\u0000", false],
    ["refuses a slash", "a/b", false],
    ["refuses a colon, which ends a name in Basic", "a:b", false],
    ["refuses markup", "<b>", false],
    ["refuses an umlaut", "\u00fc", false],
    ["refuses a letter that looks like another", "\u0430dmin", false],
    ["refuses a sign that folds to a letter", "\u212a", false],
  ];
  for (const [what, name, isGood] of table) {
    test(what, () => assert.equal(checkUsername(name) === undefined, isGood));
  }
});

describe("checkPassword() counts bytes of UTF-8 (contract 3)", () => {
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
    test(what, () => assert.equal(checkPassword(password) === undefined, isGood));
  }
});

test("checkScopeName() says what is wrong with a scope, a comma included", () => {
  assert.equal(checkScopeName("orders:read"), undefined);
  for (const name of ["", "a b", "a,b", 'a"', "a\\", "\u00fc", "a".repeat(65)]) {
    assert.equal(typeof checkScopeName(name), "string", name);
  }
});

test("parseNewUser() reads name, password and scopes", () => {
  const value = { username: "marta", password: "correct horse", scopes: ["a", "b", "a"] };
  assert.deepEqual(parseNewUser(value), { ...value, scopes: ["a", "b"] });
});

test("parseNewUser() gives scope `consumer` where none is named, none for an empty list", () => {
  const value = { username: "marta", password: "correct horse" };
  assert.deepEqual(parseNewUser(value).scopes, ["consumer"]);
  assert.deepEqual(parseNewUser({ ...value, scopes: [] }).scopes, []);
});

describe("parseNewUser() names each fault of", () => {
  const good = { username: "marta", password: "correct horse" };
  const table: [what: string, value: unknown, pointers: string[]][] = [
    ["what is no object", [], [""]],
    ["an empty object", {}, ["/username", "/password"]],
    ["everything at once", { username: "a b", password: "x", scopes: ["a b", 1], status: "active" },
      ["/username", "/password", "/scopes/0", "/scopes/1", "/status"]],
    ["a password that is a number", { ...good, password: 12345678 }, ["/password"]],
    ["scopes that are a text", { ...good, scopes: "consumer" }, ["/scopes"]],
    ["a member that would be an id", { ...good, id: "u1" }, ["/id"]],
  ];
  for (const [what, value, pointers] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => parseNewUser(value)), pointers));
  }
});

test("parseUserChange() leaves out what is not there", () => {
  assert.deepEqual(parseUserChange({}), {
    password: undefined,
    scopes: undefined,
    status: undefined,
  });
  assert.deepEqual(parseUserChange({ status: "disabled", scopes: [] }), {
    password: undefined,
    scopes: [],
    status: "disabled",
  });
});

describe("parseUserChange() names each fault of", () => {
  const table: [what: string, value: unknown, pointers: string[]][] = [
    ["a new name, which is fixed", { username: "otto" }, ["/username"]],
    ["a short password", { password: "short" }, ["/password"]],
    ["null, which is no removal", { password: null, scopes: null, status: null },
      ["/password", "/scopes", "/status"]],
    ["an unknown status", { status: "deleted" }, ["/status"]],
    ["a bad scope", { scopes: ["a,b"] }, ["/scopes/0"]],
  ];
  for (const [what, value, pointers] of table) {
    test(what, () => assert.deepEqual(pointersOf(() => parseUserChange(value)), pointers));
  }
});

test("a fault repeats no password", () => {
  try {
    parseNewUser({ username: "a b", password: "hunter2" });
    assert.fail("it was taken");
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.doesNotMatch(JSON.stringify([error.message, error.errors]), /hunter2/);
  }
});

function pointersOf(run: () => unknown): string[] {
  try {
    run();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.status, 400);
    return error.errors.map(({ pointer }) => pointer);
  }
}
