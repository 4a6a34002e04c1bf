import assert from "node:assert/strict";
import { test } from "node:test";
import { type Form, parseForm } from "../../src/base/form.ts";
import { encodeJson, parseJson } from "../../src/base/json.ts";
import { Problem } from "../../src/base/problem.ts";
import { parseClientAuth } from "../../src/oauth/client_auth.ts";
import { OAuthError } from "../../src/oauth/errors.ts";
import { parseScope } from "../../src/oauth/scope.ts";
import { badBasicHeaders, basic, goodBasicHeaders } from "../corpus/basic_headers.ts";
import { badForms, goodForms } from "../corpus/forms.ts";
import { checkAccepted } from "../helpers/accepted.ts";
import { openRandom, type Random } from "../helpers/random.ts";

/** Inputs of each parser in one run. */
const RUNS = 30_000;

const FORM_PIECES = [
  "&", "=", "+", "%", "%4", "%41", "%C3%BC", "%FF", "%00", "\u00fc", "a", "a=b&",
];

test("parseForm() reads what URLSearchParams reads, or refuses for a reason", (t) => {
  const random = openRandom(t);
  const texts = [...goodForms.map(([, text]) => text), ...badForms.map(([, body]) => body)]
    .filter((text) => typeof text === "string" && text.length < 300)
    .map(String);
  checkAccepted(t, { runs: RUNS, least: RUNS / 10 }, () => {
    const bytes = random.chance(10)
      ? random.bytes(60)
      : Buffer.from(random.mutate(random.pick(texts), FORM_PIECES));
    const note = random.describe(Buffer.from(bytes).toString("latin1"));
    const form = parseForm(bytes);
    if (form === undefined) assert.ok(isBadForm(bytes), note);
    else checkAgainstReference(form, bytes, note);
    return form !== undefined;
  });
});

const BASIC_PIECES = [
  "Basic ", "basic", "Bearer ", " ", "=", "==", ",", "%", "\u00fc", "OmI", "-_",
];

test("parseClientAuth() throws nothing but its own errors on hostile headers", (t) => {
  const random = openRandom(t);
  const headers = [...goodBasicHeaders, ...badBasicHeaders].map((row) => row[1])
    .filter((header) => header.length < 300);
  checkAccepted(t, { runs: RUNS, least: RUNS / 100 }, () => {
    const pair = random.chance(50) ? random.bytes(30) : random.text("ab:%+41Fz \u00fc", 12);
    const authorization = random.chance(40)
      ? basic(pair)
      : random.mutate(random.pick(headers), BASIC_PIECES);
    const note = random.describe(authorization);
    const body = random.pick(["", "", "client_id=a", "client_secret=b"]);
    const form = parseForm(body);
    assert.ok(form !== undefined);
    try {
      const { clientId, secrets } = parseClientAuth(authorization, form);
      // The header is the base64 of what was read.
      const [, encoded = ""] = authorization.split(/ +/);
      assert.equal(basic(Buffer.from(encoded, "base64").toString()), `Basic ${encoded}`, note);
      assert.ok(clientId !== "" && !secrets.includes("") && secrets.length <= 2, note);
      assert.ok(!body.includes("client_secret"), note);
      return true;
    } catch (error) {
      assert.ok(error instanceof OAuthError, note);
      assert.ok(["invalid_client", "invalid_request"].includes(error.code), note);
      assert.ok(error.status === 401 || error.status === 400, note);
      return false;
    }
  });
});

test("parseClientAuth() reads every pair back, form-encoded and raw (RFC 6749 §2.3.1)", (t) => {
  const random = openRandom(t);
  const alphabet = "abcXYZ019 +%:&=/?-._~!*'()\"\\\u00fc\u20ac\u{1f511}";
  const form = parseForm("");
  assert.ok(form !== undefined);
  for (let run = 0; run < RUNS; run++) {
    const id = `a${random.text("abcXYZ019", 20)}`;
    const secret = random.text(alphabet, 20);
    const encoded = new URLSearchParams([[id, secret]]).toString().replace("=", ":");
    for (const pair of [encoded, `${id}:${secret}`]) {
      const read = parseClientAuth(basic(pair), form);
      const note = random.describe(pair);
      assert.equal(read.clientId, id, note);
      assert.equal(read.secrets.includes(secret), secret !== "", note);
    }
  }
});

const JSON_PIECES = [
  "{", "}", "[", "]", '"', ":", ",", "\\", "\\u005f", "__proto__", '"__proto__":', "null", "1e999",
  "\u00fc", "\ud800", " ", "-", "\u0000", "[".repeat(40), '{"a":'.repeat(40),
];

test("parseJson() reads what JSON.parse reads, or refuses for a reason", (t) => {
  const random = openRandom(t);
  checkAccepted(t, { runs: RUNS, least: RUNS / 10 }, () => {
    const text = JSON.stringify(randomJson(random, 4));
    const bytes = random.chance(5)
      ? random.bytes(40)
      : Buffer.from(random.chance(30) ? text : random.mutate(text, JSON_PIECES));
    const note = random.describe(Buffer.from(bytes).toString("latin1"));
    try {
      const value = parseJson(bytes);
      assert.deepEqual(value, JSON.parse(new TextDecoder().decode(bytes)), note);
      assert.ok(!isBadJson(bytes), note);
      return true;
    } catch (error) {
      assert.ok(error instanceof Problem, `${note}: ${String(error)}`);
      assert.equal(error.code, "malformed", note);
      assert.ok(isBadJson(bytes), note);
      return false;
    }
  });
});

test("parseJson() reads back whatever encodeJson() writes", (t) => {
  const random = openRandom(t);
  for (let run = 0; run < RUNS; run++) {
    const value = randomJson(random, 5);
    assert.deepEqual(parseJson(Buffer.from(encodeJson(value))), value, random.describe(""));
  }
});

test("parseScope() gives good names that read back the same, or refuses for a reason", (t) => {
  const random = openRandom(t);
  const alphabet = "abAB09:/._- ,!#~";
  const pieces = ['"', "\\", "\t", "\u00fc", ",,", " "];
  checkAccepted(t, { runs: RUNS, least: RUNS / 10 }, () => {
    const clean = random.text(alphabet, random.pick([5, 40, 300]));
    const text = random.chance(50) ? clean : random.mutate(clean, pieces);
    const note = random.describe(text);
    const names = parseScope(text);
    // The same rule written a second time: split at separators, check each character's number.
    const wanted: string[] = [];
    for (const piece of text.replaceAll(",", " ").split(" ")) {
      if (piece !== "" && !wanted.includes(piece)) wanted.push(piece);
    }
    const good = wanted.every((name) => name.length <= 64 && [...name].every(isScopeCharacter));
    assert.deepEqual(names, good ? wanted : undefined, note);
    if (names !== undefined) assert.deepEqual(parseScope(names.join(" ")), names, note);
    return names !== undefined;
  });
});

function checkAgainstReference(form: Form, bytes: Uint8Array, note: string): void {
  // URLSearchParams drops a "?" in front, which is none in a form; an empty pair keeps it.
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const reference = new URLSearchParams(`&${text}`);
  for (const name of new Set(reference.keys())) {
    const values = reference.getAll(name);
    assert.equal(form.duplicates.includes(name), values.length > 1, note);
    assert.equal(form.get(name), values.length > 1 ? undefined : values[0] || undefined, note);
    assert.deepEqual(form.getAll(name), values.filter((value) => value !== ""), note);
  }
  assert.ok(form.duplicates.every((name) => reference.has(name)), note);
}

/** Bad escapes, or bytes that are not UTF-8 once decoded: found by Node's own UTF-8 check. */
function isBadForm(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString("latin1");
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return true;
  const pieces = text.split(/[&=]/);
  const decoded = pieces.map((piece) =>
    piece.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16))),
  );
  // The bytes must be UTF-8 both as they are and with the escapes decoded.
  return [...pieces, ...decoded].some((piece) => !isUtf8(piece)) ||
    pieces.some((piece) => !isUtf8(piece.replace(/%../g, " ")));
}

function isUtf8(latin1: string): boolean {
  const bytes = Buffer.from(latin1, "latin1");
  return Buffer.from(bytes.toString()).equals(bytes);
}

function isBadJson(bytes: Uint8Array): boolean {
  if (!isUtf8(Buffer.from(bytes).toString("latin1"))) return true;
  const text = Buffer.from(bytes).toString();
  let isHuge = false;
  let value: unknown;
  try {
    value = JSON.parse(text, (_, inner) => {
      isHuge ||= typeof inner === "number" && !Number.isFinite(inner);
      return inner;
    });
  } catch {
    return true;
  }
  // A separate scan finds each string token; one that is a member's name is decoded and checked.
  const tokens = text.matchAll(/("(?:[^"\\]|\\.)*")(?=\s*:)|"(?:[^"\\]|\\.)*"/g);
  const hasProto = tokens.some(([, name]) => name && JSON.parse(name) === "__proto__");
  return hasProto || isHuge || depthOf(value) > 64;
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function randomJson(random: Random, depth: number): unknown {
  const kind = random.below(depth > 0 ? 8 : 6);
  if (kind === 0) return null;
  if (kind === 1) return random.chance(50);
  if (kind === 2) return random.below(1e9) - 5e8;
  if (kind === 3) return random.below(1e9) / 7;
  if (kind < 6) return random.text('ab"\\/\n\u0000\u00fc\u{1f511}\u2028{}[]:,_', 12);
  const length = random.below(5);
  if (kind === 6) return Array.from({ length }, () => randomJson(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length }, () => [random.text("ab_\u00fc\"", 6), randomJson(random, depth - 1)]),
  );
}

function isScopeCharacter(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code > 0x20 && code < 0x7f && !'",\\'.includes(character);
}
