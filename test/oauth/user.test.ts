import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/problem.ts";
import {
  checkPassword,
  checkUsername,
  parseNewUser,
  parseUserChange,
} from "../../src/oauth/user.ts";

const minimal = { username: "marta", password: "long enough" };

function faultsOf(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error.errors.map(({ pointer }) => pointer).sort();
  }
}

describe("checkUsername() (contract 3)", () => {
  for (const name of ["a", "A.b_c@d+e-9", "x".repeat(64), "..."]) {
    test(`takes ${name.slice(0, 20)}`, () => assert.equal(checkUsername(name), undefined));
  }
  for (const name of ["", "x".repeat(65), "a b", "a\n", "ü", "a/b", "a\0", "a'b", "a,b", "a:b"]) {
    test(`refuses ${JSON.stringify(name.slice(0, 20))}`, () => {
      assert.notEqual(checkUsername(name), undefined);
    });
  }
});

describe("checkPassword() counts bytes (contract 3)", () => {
  const table: [what: string, password: string, isGood: boolean][] = [
    ["7 letters", "x".repeat(7), false],
    ["8 letters", "x".repeat(8), true],
    ["4 letters of two bytes", "üüüü", true],
    ["1,024 letters", "x".repeat(1024), true],
    ["1,025 letters", "x".repeat(1025), false],
    ["513 letters of two bytes", "ü".repeat(513), false],
    ["8 spaces", " ".repeat(8), true],
  ];
  for (const [what, password, isGood] of table) {
    test(`${isGood ? "takes" : "refuses"} ${what}`, () => {
      assert.equal(checkPassword(password) === undefined, isGood);
    });
  }
});

describe("parseNewUser() (contract 10)", () => {
  test("gives scope consumer where none was said", () => {
    assert.deepEqual(parseNewUser(minimal), { ...minimal, scopes: ["consumer"] });
  });

  test("takes an empty list of scopes", () => {
    assert.deepEqual(parseNewUser({ ...minimal, scopes: [] }).scopes, []);
  });

  const refused: [what: string, body: unknown, pointers: string[]][] = [
    ["nothing", {}, ["/password", "/username"]],
    ["a scope that is none", { ...minimal, scopes: ["a b", "ok", ""] }, ["/scopes/0", "/scopes/2"]],
    ["an id of its own", { ...minimal, id: "u1" }, ["/id"]],
    ["a status", { ...minimal, status: "active" }, ["/status"]],
    ["null for a scope list", { ...minimal, scopes: null }, ["/scopes"]],
    ["text", "marta", [""]],
  ];
  for (const [what, body, pointers] of refused) {
    test(`refuses ${what}`, () => {
      assert.deepEqual(faultsOf(() => parseNewUser(body)), pointers);
    });
  }
});

describe("parseUserChange() (contract 10)", () => {
  test("has nothing of what was not said", () => {
    const { password, scopes, status } = parseUserChange({});
    assert.deepEqual([password, scopes, status], [undefined, undefined, undefined]);
  });

  test("has what was said", () => {
    const change = { password: "another one", scopes: ["orders"], status: "disabled" };
    assert.deepEqual({ ...parseUserChange(change) }, change);
  });

  for (const name of ["username", "id", "created_at"]) {
    test(`refuses to change ${name}`, () => {
      assert.deepEqual(faultsOf(() => parseUserChange({ [name]: "x" })), [`/${name}`]);
    });
  }
});
