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
    ["separators at both ends", " ,a, ", ["a"]],
    ["nothing", "", []],
    ["only separators", " , ", []],
    ["a repeated name once", "b a b,a", ["b", "a"]],
    ["names in two cases as two", "a A", ["a", "A"]],
    ["every other allowed character", "!#$%&'()*+-./:;<=>?@[]^_`{|}~",
      ["!#$%&'()*+-./:;<=>?@[]^_`{|}~"]],
    ["a URL as a name", "https://as.example/scope", ["https://as.example/scope"]],
    ["64 characters", "a".repeat(64), ["a".repeat(64)]],
    ["65 characters as bad", "a".repeat(65), undefined],
    ["a bad name among good ones as bad", 'a b" c', undefined],
    ["a backslash as bad", "a\\b", undefined],
    ["a tab as bad", "a\tb", undefined],
    ["a line feed as bad", "a\nb", undefined],
    ["a final line feed as bad", "a\n", undefined],
    ["a NUL as bad", "a\u0000", undefined],
    ["a DEL as bad", "a\u007f", undefined],
    ["a non-ASCII character as bad", "\u00fc", undefined],
    ["a no-break space as bad", "a\u00a0b", undefined],
  ];
  for (const [what, text, names] of table) {
    test(what, () => assert.deepEqual(parseScope(text), names));
  }
});

test("isScopeName() accepts scope-token characters without the comma (RFC 6749 §3.3)", () => {
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

describe("grantScope() (RFC 6749 §3.3)", () => {
  type Names = string[] | undefined;
  const table: [what: string, requested: string[], app: string[], user: Names, granted: Names][] = [
    ["grants what the app and the user have", ["a"], ["a", "b"], ["a", "b"], ["a"]],
    ["keeps the order of the request", ["b", "a"], ["a", "b"], ["a", "b"], ["b", "a"]],
    ["narrows to the scopes of the user", ["a", "b"], ["a", "b"], ["b", "c"], ["b"]],
    ["refuses what the user lacks entirely", ["a"], ["a"], ["b"], undefined],
    ["refuses what the app lacks", ["b"], ["a"], ["a", "b"], undefined],
    ["refuses if the app lacks one of them", ["a", "b"], ["a"], ["a", "b"], undefined],
    ["refuses if the app has no scopes", ["a"], [], ["a"], undefined],
    ["grants all that both have without a request", [], ["a", "b", "c"], ["c", "a"], ["a", "c"]],
    ["leaves out backend without a request", [], ["a", "backend"], ["a", "backend"], ["a"]],
    ["leaves out backend:read without a request", [], ["a", "backend:read"],
      ["a", "backend:read"], ["a"]],
    ["grants backend by name", ["backend"], ["a", "backend"], ["a", "backend"], ["backend"]],
    ["refuses backend by name if the app lacks it", ["backend"], ["a"], ["backend"], undefined],
    ["refuses backend by name if the user lacks it", ["backend"], ["backend"], ["a"], undefined],
    ["refuses if only backend is left without a request", [], ["backend"], ["backend"], undefined],
    ["refuses if the app and the user share no scope", [], ["a"], ["b"], undefined],
    ["refuses if the user has no scopes", [], ["a"], [], undefined],
    ["grants an app for itself what it requests", ["a"], ["a", "b"], undefined, ["a"]],
    ["grants an app for itself all but backend", [], ["a", "backend"], undefined, ["a"]],
    ["grants an app for itself backend by name", ["backend"], ["backend"], undefined, ["backend"]],
    ["refuses an app for itself what it lacks", ["c"], ["a"], undefined, undefined],
    ["refuses the name of an inherited property", ["constructor"], ["a"], ["a"], undefined],
  ];
  for (const [what, requested, app, user, granted] of table) {
    test(what, () => {
      assert.deepEqual(unlessInvalid(() => grantScope({ requested, app, user })), granted);
    });
  }
});

describe("invalid_scope names the scope and how to allow it:", () => {
  const table: [what: string, decide: () => unknown, names: RegExp][] = [
    ["one that the app may not have",
      () => grantScope({ requested: ["a", "b"], app: ["a"], user: ["b"] }),
      /app may not have scope b\. .*add it to the scopes of the app/],
    ["one that the user lacks", () => grantScope({ requested: ["a"], app: ["a"], user: [] }),
      /user does not have scope a\. .*add it to the scopes of the user/],
    ["one of the app's that the user lacks, if none is requested",
      () => grantScope({ requested: [], app: ["backend", "a"], user: ["backend"] }),
      /user does not have scope a\. .*add it to the scopes of the user/],
    ["none, if none is requested and none is granted by default",
      () => grantScope({ requested: [], app: ["backend"], user: ["backend"] }),
      /request one by name/],
    ["one that was not granted", () => narrowScope(["a", "c"], ["a"]),
      /does not have scope c\. Authorize again/],
    ["one that an app may not ask for", () => checkAppScopes(["a", "b"], { scopes: ["b"] }),
      /app may not have scope a\. .*add it to the scopes of the app/],
    ["openid, which brings no id token", () => checkAppScopes(["openid"], { scopes: ["b"] }),
      /scope openid\. There are no id tokens: leave it out .*add it to the scopes of the app/],
    ["one that a metadata document cannot give", () =>
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

describe("narrowScope() (RFC 6749 §6)", () => {
  const table: [what: string, requested: string[], chain: string[], granted?: string[]][] = [
    ["grants the whole chain without a request", [], ["a", "b"], ["a", "b"]],
    ["grants backend without a request if the chain has it", [], ["a", "backend"],
      ["a", "backend"]],
    ["grants a part", ["b"], ["a", "b"], ["b"]],
    ["grants the whole in the order of the request", ["b", "a"], ["a", "b"], ["b", "a"]],
    ["refuses if one was never granted", ["a", "c"], ["a", "b"]],
    ["refuses if none was granted", ["c"], ["a"]],
    ["grants nothing if the chain is empty", [], [], []],
  ];
  for (const [what, requested, chain, granted] of table) {
    test(what, () => assert.deepEqual(unlessInvalid(() => narrowScope(requested, chain)), granted));
  }
});
