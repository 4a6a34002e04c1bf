import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { type Form, parseForm } from "../../src/base/form.ts";
import { encodeJson, parseJson } from "../../src/base/json.ts";
import { Problem } from "../../src/base/problem.ts";
import { parseClientAuth } from "../../src/oauth/client_auth.ts";
import { OAuthError } from "../../src/oauth/errors.ts";
import { checkRedirectUri, redirectWith } from "../../src/oauth/redirect_uri.ts";
import { parseScope } from "../../src/oauth/scope.ts";
import { badBasicHeaders, basic, goodBasicHeaders } from "../corpus/basic_headers.ts";
import { badForms, goodForms } from "../corpus/forms.ts";
import { goodRedirects, redirectAttacks } from "../corpus/redirect_uris.ts";
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
  const accepted = countAccepted(() => {
    const bytes = random.chance(10)
      ? random.bytes(60)
      : Buffer.from(random.mutate(random.pick(texts), FORM_PIECES));
    const note = describeInput(random, Buffer.from(bytes).toString("latin1"));
    const form = parseForm(bytes);
    if (form === undefined) assert.ok(isBadForm(bytes), note);
    else checkAgainstReference(form, bytes, note);
    return form !== undefined;
  });
  t.diagnostic(`${accepted} of ${RUNS} accepted`);
  assert.ok(accepted > RUNS / 10 && accepted < RUNS);
});

const BASIC_PIECES = [
  "Basic ", "basic", "Bearer ", " ", "=", "==", ",", "%", "\u00fc", "OmI", "-_",
];

test("parseClientAuth() throws nothing but its own errors on hostile headers", (t) => {
  const random = openRandom(t);
  const headers = [...goodBasicHeaders, ...badBasicHeaders].map((row) => row[1])
    .filter((header) => header.length < 300);
  const accepted = countAccepted(() => {
    const pair = random.chance(50) ? random.bytes(30) : random.text("ab:%+41Fz \u00fc", 12);
    const authorization = random.chance(40)
      ? basic(pair)
      : random.mutate(random.pick(headers), BASIC_PIECES);
    const note = describeInput(random, authorization);
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
  t.diagnostic(`${accepted} of ${RUNS} accepted`);
  assert.ok(accepted > RUNS / 100 && accepted < RUNS);
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
      const note = describeInput(random, pair);
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
  const accepted = countAccepted(() => {
    const text = JSON.stringify(randomJson(random, 4));
    const bytes = random.chance(5)
      ? random.bytes(40)
      : Buffer.from(random.chance(30) ? text : random.mutate(text, JSON_PIECES));
    const note = describeInput(random, Buffer.from(bytes).toString("latin1"));
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
  t.diagnostic(`${accepted} of ${RUNS} accepted`);
  assert.ok(accepted > RUNS / 10 && accepted < RUNS);
});

test("parseJson() reads back whatever encodeJson() writes", (t) => {
  const random = openRandom(t);
  for (let run = 0; run < RUNS; run++) {
    const value = randomJson(random, 5);
    assert.deepEqual(parseJson(Buffer.from(encodeJson(value))), value, describeInput(random, ""));
  }
});

test("parseScope() gives good names that read back the same, or refuses for a reason", (t) => {
  const random = openRandom(t);
  const alphabet = "abAB09:/._- ,!#~";
  const pieces = ['"', "\\", "\t", "\u00fc", ",,", " "];
  const accepted = countAccepted(() => {
    const clean = random.text(alphabet, random.pick([5, 40, 300]));
    const text = random.chance(50) ? clean : random.mutate(clean, pieces);
    const note = describeInput(random, text);
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
  t.diagnostic(`${accepted} of ${RUNS} accepted`);
  assert.ok(accepted > RUNS / 10 && accepted < RUNS);
});

const URI_PIECES = [
  "/", "//", "\\", ".", "..", "/../", "/./", "%2e", "%2E%2e", "%2f", "%5C", "%25", "%", "%zz",
  "%C0%AE", "%00", ";", "?", "#", "@", ":", ":443", ":51004", "http://", "https://", "evil.example",
  "app.example", "app", "cb", "\t", "\n", " ", "\u00fc", "\uff0f", "\u3002", "'", "&", "=",
  "?code=x", "A", "[::1]", "127.0.0.1", "localhost",
];

test("checkRedirectUri() accepts nothing that leaves the app's origin or path", (t) => {
  const random = openRandom(t);
  const accepted = countAccepted(() => {
    const { app, cases } = random.pick(random.chance(70) ? goodRedirects : redirectAttacks);
    const [base] = random.pick(cases);
    const start = base.length > 300 || random.chance(40) ? app.url : base;
    // Half of them only grow at the end, where the rule leaves an attacker the most freedom.
    const end = random.mutate(random.text("ab/.%2e?=&", 8), URI_PIECES);
    const raw = random.chance(50)
      ? random.mutate(start, URI_PIECES)
      : start + random.pick(["", "/", "?"]) + end;
    if (!checkRedirectUri(raw, app)) return false;
    const note = `${describeInput(random, raw)} for ${app.url}`;
    checkInside(raw, app.url, note);
    if (app.redirectUris.length > 0) {
      const listed = [raw, raw.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\])):\d+/, "$1")];
      assert.ok(listed.some((uri) => app.redirectUris.includes(uri)), note);
    }
    checkRedirect(raw, random, note);
    return true;
  });
  t.diagnostic(`${accepted} of ${RUNS} accepted`);
  assert.ok(accepted > RUNS / 50 && accepted < RUNS);
});

function countAccepted(run: () => boolean): number {
  let accepted = 0;
  for (let count = 0; count < RUNS; count++) if (run()) accepted++;
  return accepted;
}

function describeInput(random: Random, input: string): string {
  return `GATEPOST_SEED=${random.seed}: ${JSON.stringify(input)}`;
}

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
  let hasProto = false;
  let isHuge = false;
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString(), (_, inner) => {
      isHuge ||= typeof inner === "number" && !Number.isFinite(inner);
      return inner;
    });
  } catch {
    return true;
  }
  // A separate scan finds each string token; one that is a member's name is decoded and checked.
  const text = Buffer.from(bytes).toString();
  for (const [, token = ""] of text.matchAll(/("(?:[^"\\]|\\.)*")(?=\s*:)|"(?:[^"\\]|\\.)*"/g)) {
    if (token !== "" && JSON.parse(token) === "__proto__") hasProto = true;
  }
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

/**
 * The rule written a second time, without the parser's idea of what is canonical: the text is
 * split as in RFC 3986 Appendix B, its authority is compared as text, and its path is read in all
 * ways in which a server might read it: decoded, backslashes as slashes, dot segments resolved.
 */
function checkInside(raw: string, appUrl: string, note: string): void {
  const [scheme, authority, path] = takeApart(raw);
  const [appScheme, appAuthority, appPath] = takeApart(appUrl);
  const portless = /^(?:127\.0\.0\.1|\[::1\])$/.test(appAuthority) && appScheme === "http";
  const shown = portless ? authority.replace(/:[1-9][0-9]{0,4}$|:0$/, "") : authority;
  assert.deepEqual([scheme, shown], [appScheme, appAuthority], note);
  const wanted = appPath.split("/").slice(1);
  const decoded = decodeURIComponent(path);
  for (const reading of [path, decoded, posix.normalize(decoded)]) {
    const segments = reading.replaceAll("\\", "/").split("/").slice(1);
    const isApp = reading === appPath || (appPath === "/" && reading === "");
    const begin = wanted.at(-1) === "" ? wanted.slice(0, -1) : wanted;
    const isBelow = segments.length > begin.length &&
      begin.every((segment, at) => segments[at] === segment);
    assert.ok(isApp || isBelow, `${note}: ${reading}`);
    assert.ok(!segments.includes(".."), note);
  }
  // What a browser would open, and what a relative reference on that page would resolve to.
  const opened = new URL(raw);
  assert.equal(`${opened.protocol}//${opened.host}`, `${scheme}://${authority}`, note);
  assert.equal(opened.hash + opened.username + opened.password, "", note);
}

/** RFC 3986 Appendix B: scheme, authority and path. */
function takeApart(uri: string): [scheme: string, authority: string, path: string] {
  const [, scheme = "", authority = "", path = ""] =
    /^([^:/?#]+):\/\/([^/?#]*)([^?#]*)/.exec(uri) ?? [];
  return [scheme, authority, path === "" ? "/" : path];
}

/** However the URI came to be, the app finds exactly one code and state: those of this server. */
function checkRedirect(raw: string, random: Random, note: string): void {
  const state = random.text("ab &=?#%+;'\"\u00fc\u{1f511}\u0000", 12);
  const to = redirectWith(raw, { code: "c", state, iss: "https://as.example" });
  const query = new URL(to).searchParams;
  assert.deepEqual(query.getAll("code"), ["c"], note);
  assert.deepEqual(query.getAll("state"), [state], note);
  assert.deepEqual(query.getAll("iss"), ["https://as.example"], note);
  assert.ok(![...query.keys()].some((name) => name.startsWith("error")), note);
  const [begin = ""] = raw.split("?");
  assert.ok(to.startsWith(`${begin}?`), note);
}
