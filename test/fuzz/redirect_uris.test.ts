import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { checkRedirectUri, redirectWith } from "../../src/oauth/redirect_uri.ts";
import { goodRedirects, redirectAttacks } from "../corpus/redirect_uris.ts";
import { checkAccepted } from "../helpers/accepted.ts";
import { openRandom, type Random } from "../helpers/random.ts";

const RUNS = 30_000;

const URI_PIECES = [
  "/", "//", "\\", ".", "..", "/../", "/./", "%2e", "%2E%2e", "%2f", "%5C", "%25", "%", "%zz",
  "%C0%AE", "%00", ";", "?", "#", "@", ":", ":443", ":51004", "http://", "https://", "evil.example",
  "app.example", "app", "cb", "\t", "\n", " ", "\u00fc", "\uff0f", "\u3002", "'", "&", "=",
  "?code=x", "A", "[::1]", "127.0.0.1", "localhost",
];

test("checkRedirectUri() accepts nothing that leaves the app's origin or path", (t) => {
  const random = openRandom(t);
  checkAccepted(t, { runs: RUNS, least: RUNS / 50 }, () => {
    const { app, cases } = random.pick(random.chance(70) ? goodRedirects : redirectAttacks);
    const [base] = random.pick(cases);
    const start = base.length > 300 || random.chance(40) ? app.url : base;
    // Half of them only grow at the end, where the rule leaves an attacker the most freedom.
    const end = random.mutate(random.text("ab/.%2e?=&", 8), URI_PIECES);
    const raw = random.chance(50)
      ? random.mutate(start, URI_PIECES)
      : start + random.pick(["", "/", "?"]) + end;
    if (!checkRedirectUri(raw, app)) return false;
    const note = `${random.describe(raw)} for ${app.url}`;
    checkInside(raw, app.url, note);
    if (app.redirectUris.length > 0) {
      const listed = [raw, raw.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\])):\d+/, "$1")];
      assert.ok(listed.some((uri) => app.redirectUris.includes(uri)), note);
    }
    checkRedirect(raw, random, note);
    return true;
  });
});

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
  const sent = { code: "c", state, iss: "https://as.example" };
  const to = redirectWith(raw, sent);
  const query = new URL(to).searchParams;
  for (const [name, value] of Object.entries(sent)) {
    assert.deepEqual(query.getAll(name), [value], note);
  }
  assert.ok(![...query.keys()].some((name) => name.startsWith("error")), note);
  const [begin = ""] = raw.split("?");
  assert.ok(to.startsWith(`${begin}?`), note);
}
