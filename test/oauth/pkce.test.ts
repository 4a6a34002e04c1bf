import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { CODE_CHALLENGE, CODE_VERIFIER, verifyPkce } from "../../src/oauth/pkce.ts";

// RFC 7636 Appendix B.
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const verbFor = (good: boolean) => good ? "accepts" : "refuses";

describe("CODE_VERIFIER (RFC 7636 §4.1)", () => {
  const table: [what: string, text: string, good: boolean][] = [
    ["43 characters", "a".repeat(43), true],
    ["128 characters", "a".repeat(128), true],
    ["42 characters", "a".repeat(42), false],
    ["129 characters", "a".repeat(129), false],
    ["an empty text", "", false],
    ["every unreserved character", "ABCXYZabcxyz0189-._~".repeat(3), true],
    ["a plus sign", `${"a".repeat(43)}+`, false],
    ["a slash", `${"a".repeat(43)}/`, false],
    ["padding", `${"a".repeat(43)}=`, false],
    ["a space", `${"a".repeat(43)} `, false],
    ["a percent sign", `${"a".repeat(43)}%41`, false],
    ["a final line feed", `${"a".repeat(43)}\n`, false],
    ["a letter that is not ASCII", `${"a".repeat(43)}\u00fc`, false],
  ];
  for (const [what, text, good] of table) {
    test(`${verbFor(good)} ${what}`, () => assert.equal(CODE_VERIFIER.test(text), good));
  }
});

describe("CODE_CHALLENGE (RFC 7636 §4.2)", () => {
  const table: [what: string, text: string, good: boolean][] = [
    ["the example", CHALLENGE, true],
    ["hyphens and underscores", "-_".repeat(21) + "A", true],
    ["42 characters", "a".repeat(42), false],
    ["44 characters", "a".repeat(44), false],
    ["128 characters", "a".repeat(128), false],
    ["an empty text", "", false],
    ["padding", `${CHALLENGE}=`, false],
    ["the other base64 alphabet", `${"a".repeat(41)}+/`, false],
    ["a dot", `${"a".repeat(42)}.`, false],
    ["a tilde", `${"a".repeat(42)}~`, false],
    ["a final line feed", `${CHALLENGE}\n`, false],
  ];
  for (const [what, text, good] of table) {
    test(`${verbFor(good)} ${what}`, () => assert.equal(CODE_CHALLENGE.test(text), good));
  }
});

describe("verifyPkce() by S256 (RFC 7636 §4.6)", () => {
  const longest = "~".repeat(128);
  const table: [what: string, verifier: string, challenge: string, good: boolean][] = [
    ["the example of Appendix B", VERIFIER, CHALLENGE, true],
    ["the longest verifier", longest, s256(longest), true],
    ["another verifier", "a".repeat(43), CHALLENGE, false],
    ["a verifier with its last character changed", `${VERIFIER.slice(0, -1)}l`, CHALLENGE, false],
    ["a verifier in another case", VERIFIER.toLowerCase(), CHALLENGE, false],
    ["the challenge as the verifier, which is plain", CHALLENGE, CHALLENGE, false],
    ["the verifier as the challenge, which is plain", VERIFIER, VERIFIER, false],
    ["an empty verifier", "", CHALLENGE, false],
    ["an empty challenge", VERIFIER, "", false],
    ["both empty", "", "", false],
    ["an empty verifier with its hash", "", s256(""), false],
    ["a verifier that is too short, though its hash is right", "a", s256("a"), false],
    ["a verifier that is too long, though its hash is right", "a".repeat(129),
      s256("a".repeat(129)), false],
    ["a verifier of other characters, though its hash is right", "/".repeat(43),
      s256("/".repeat(43)), false],
    ["a padded challenge", VERIFIER, `${CHALLENGE}=`, false],
    ["a challenge in hexadecimal", VERIFIER, s256(VERIFIER, "hex"), false],
    ["a challenge of 43 characters with more bytes", VERIFIER, "\u00fc".repeat(43), false],
  ];
  for (const [what, verifier, challenge, good] of table) {
    test(`${verbFor(good)} ${what}`, () => assert.equal(verifyPkce(verifier, challenge), good));
  }
});

function s256(text: string, encoding: "base64url" | "hex" = "base64url"): string {
  return createHash("sha256").update(text).digest(encoding);
}
