import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OAuthError } from "../../src/oauth/errors.ts";
import {
  checkAppScopes,
  grantScope,
  isScopeName,
  narrowScope,
  parseScope,
} from "../../src/oauth/scope.ts";

describe("parseScope() reads (RFC 6749 §3.3)", () => {
  const table: [what: string, text: string, names: string[] | undefined][] = [
    ["one name", "a", ["a"]],
    ["spaces", "a b c", ["a", "b", "c"]],
    ["commas", "a,b,c", ["a", "b", "c"]],
    ["commas and spaces", "a, b ,c , d", ["a", "b", "c", "d"]],
    ["separators in a row", "a,, ,  b", ["a", "b"]],
    ["separators around", " ,a, ", ["a"]],
    ["nothing", "", []],
    ["separators alone", " , ", []],
    ["a name twice, once", "b a b,a", ["b", "a"]],
    ["names in two cases as two", "a A", ["a", "A"]],
    ["every other character", "!#$%&'()*+-./:;<=>?@[]^_`{|}~",
      ["!#$%&'()*+-./:;<=>?@[]^_`{|}~"]],
    ["a URL as a name", "https://as.example/scope", ["https://as.example/scope"]],
    ["64 characters", "a".repeat(64), ["a".repeat(64)]],
    ["65 characters as bad", "a".repeat(65), undefined],
    ["a bad name among good ones as bad", 'a b" c', undefined],
    ["a backslash as bad", "a\\b", undefined],
    ["a tab as bad", "a\tb", undefined],
    ["a line feed as bad", "a\nb", undefined],
    ["a line feed behind as bad", "a\n", undefined],
    ["a NUL as bad", "a\u0000", undefined],
    ["a DEL as bad", "a\u007f", undefined],
    ["what is not ASCII as bad", "\u00fc", undefined],
    ["a no-break space as bad", "a\u00a0b", undefined],
  ];
  for (const [what, text, names] of table) {
    test(what, () => assert.deepEqual(parseScope(text), names));
  }
});

test("isScopeName() takes scope-token characters without the comma (RFC 6749 §3.3)", () => {
  for (let code = 0; code < 0x180; code++) {
    const inGrammar = code === 0x21 || (code >= 0x23 && code <= 0x5b) ||
      (code >= 0x5d && code <= 0x7e);
    const character = String.fromCharCode(code);
    assert.equal(isScopeName(character), inGrammar && character !== ",", `character ${code}`);
  }
  assert.equal(isScopeName(""), false);
  assert.equal(isScopeName("a".repeat(64)), true);
  assert.equal(isScopeName("a".repeat(65)), false);
});

describe("grantScope() decides (RFC 6749 §3.3)", () => {
  type Names = string[] | undefined;
  const table: [what: string, requested: string[], app: string[], user: Names, granted: Names][] = [
    ["what both have", ["a"], ["a", "b"], ["a", "b"], ["a"]],
    ["in the order of the request", ["b", "a"], ["a", "b"], ["a", "b"], ["b", "a"]],
    ["narrowed to the user's", ["a", "b"], ["a", "b"], ["b", "c"], ["b"]],
    ["invalid where the user has none of it", ["a"], ["a"], ["b"], undefined],
    ["invalid where the app may not", ["b"], ["a"], ["a", "b"], undefined],
    ["invalid where the app may not one of them", ["a", "b"], ["a"], ["a", "b"], undefined],
    ["invalid where the app may nothing", ["a"], [], ["a"], undefined],
    ["nothing asked as all that both have", [], ["a", "b", "c"], ["c", "a"], ["a", "c"]],
    ["nothing asked without backend", [], ["a", "backend"], ["a", "backend"], ["a"]],
    ["nothing asked without backend:read", [], ["a", "backend:read"], ["a", "backend:read"], ["a"]],
    ["backend by name", ["backend"], ["a", "backend"], ["a", "backend"], ["backend"]],
    ["backend by name, not the app's", ["backend"], ["a"], ["backend"], undefined],
    ["backend by name, not the user's", ["backend"], ["backend"], ["a"], undefined],
    ["invalid where backend alone is left", [], ["backend"], ["backend"], undefined],
    ["invalid where nothing is shared", [], ["a"], ["b"], undefined],
    ["invalid where the user has nothing", [], ["a"], [], undefined],
    ["the app for itself, asked", ["a"], ["a", "b"], undefined, ["a"]],
    ["the app for itself, nothing asked", [], ["a", "backend"], undefined, ["a"]],
    ["the app for itself, backend", ["backend"], ["backend"], undefined, ["backend"]],
    ["the app for itself, more than it may", ["c"], ["a"], undefined, undefined],
    ["an inherited name as no scope", ["constructor"], ["a"], ["a"], undefined],
  ];
  for (const [what, requested, app, user, granted] of table) {
    test(what, () => {
      assert.deepEqual(unlessInvalid(() => grantScope({ requested, app, user })), granted);
    });
  }
});

describe("invalid_scope says which scope, and how it is allowed:", () => {
  const table: [what: string, decide: () => unknown, names: RegExp][] = [
    ["one that the app may not have",
      () => grantScope({ requested: ["a", "b"], app: ["a"], user: ["b"] }),
      /app may not have scope b\. .*add it to the scopes of the app/],
    ["one that the user has not", () => grantScope({ requested: ["a"], app: ["a"], user: [] }),
      /user does not have scope a\. .*add it to the scopes of the user/],
    ["one of the app's that the user has not, where none is named",
      () => grantScope({ requested: [], app: ["backend", "a"], user: ["backend"] }),
      /user does not have scope a\. .*add it to the scopes of the user/],
    ["none by name where nothing is shared",
      () => grantScope({ requested: [], app: ["backend"], user: ["backend"] }),
      /request one by name/],
    ["one that was not granted", () => narrowScope(["a", "c"], ["a"]),
      /does not have scope c\. Authorize again/],
    ["one that an app may not ask for", () => checkAppScopes(["a", "b"], { scopes: ["b"] }),
      /app may not have scope a\. .*add it to the scopes of the app/],
    ["openid, which brings no id token", () => checkAppScopes(["openid"], { scopes: ["b"] }),
      /scope openid\. There are no id tokens: leave it out .*add it to the scopes of the app/],
    ["one that no document gives", () =>
      checkAppScopes(["a"], { scopes: ["b"], metadataUrl: "https://app.example/client.json" }),
      /app may not have scope a\. .*an administrator can register it/],
  ];
  for (const [what, decide, names] of table) {
    test(what, () => assert.throws(decide, { code: "invalid_scope", message: names }));
  }
});

function unlessInvalid<Result>(decide: () => Result): Result | undefined {
  try {
    return decide();
  } catch (error) {
    assert.ok(error instanceof OAuthError && error.code === "invalid_scope");
    return undefined;
  }
}

describe("narrowScope() decides (RFC 6749 §6)", () => {
  const table: [what: string, requested: string[], chain: string[], granted?: string[]][] = [
    ["nothing asked as the whole chain", [], ["a", "b"], ["a", "b"]],
    ["nothing asked with backend, which was asked once", [], ["a", "backend"],
      ["a", "backend"]],
    ["a part", ["b"], ["a", "b"], ["b"]],
    ["the whole", ["b", "a"], ["a", "b"], ["b", "a"]],
    ["invalid where one was never granted", ["a", "c"], ["a", "b"]],
    ["invalid where none was granted", ["c"], ["a"]],
    ["nothing where the chain is empty", [], [], []],
  ];
  for (const [what, requested, chain, granted] of table) {
    test(what, () => assert.deepEqual(unlessInvalid(() => narrowScope(requested, chain)), granted));
  }
});
