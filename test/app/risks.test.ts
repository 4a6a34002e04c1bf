import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findRisks } from "../../src/app/risks.ts";
import { configOf } from "../helpers/config.ts";
import { makeFolder } from "../helpers/database.ts";

const SAFE = {
  GATEPOST_BASE_URL: "https://api.example.com",
  GATEPOST_TRUSTED_PROXIES: "127.0.0.1",
  GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  GATEPOST_DATABASE: "/nowhere/gatepost.db",
};

/** The variables that the warnings begin with. */
function warned(env: Record<string, string | undefined>, openFiles?: number): string[] {
  return findRisks(configOf({ ...SAFE, ...env }), openFiles).map((risk) => {
    assert.match(risk, /^[^\n]+$/);
    return risk.split(":")[0] ?? "";
  });
}

test("a set-up without a risk has no warning", () => {
  assert.deepEqual(warned({}, Infinity), []);
});

const BASE_URLS = [
  ["http://api.example.com", ["GATEPOST_BASE_URL"]],
  ["http://10.0.0.7:8080/gate", ["GATEPOST_BASE_URL"]],
  ["http://localhost:8080", []],
  ["http://127.0.0.1:8080", []],
  ["http://[::1]:8080", []],
  ["https://api.example.com/gate", []],
] as const;

for (const [url, expected] of BASE_URLS) {
  test(`the base URL ${url} gets ${expected.length === 0 ? "no" : "a"} warning`, () => {
    assert.deepEqual(warned({ GATEPOST_BASE_URL: url }, Infinity), expected);
  });
}

test("without a base URL the listening address decides about the warning", () => {
  const env = { GATEPOST_BASE_URL: undefined, GATEPOST_HOST: "10.0.0.7" };
  assert.deepEqual(warned(env, Infinity), ["GATEPOST_BASE_URL"]);
  assert.deepEqual(warned({ GATEPOST_BASE_URL: undefined, GATEPOST_PORT: "0" }, Infinity), []);
});

test("a console listener that is not on loopback gets a warning", () => {
  for (const place of ["10.0.0.7:9090", "[fd00::7]:9090", "console.example:9090"]) {
    assert.deepEqual(warned({ GATEPOST_CONSOLE: place }, Infinity), ["GATEPOST_CONSOLE"], place);
  }
  for (const place of ["on", "off", "127.0.0.1:9090", "[::1]:9090", "localhost:9090"]) {
    assert.deepEqual(warned({ GATEPOST_CONSOLE: place }, Infinity), [], place);
  }
});

test("https without a trusted proxy gets a warning, http on loopback does not", () => {
  const env = { GATEPOST_TRUSTED_PROXIES: undefined };
  assert.deepEqual(warned(env, Infinity), ["GATEPOST_TRUSTED_PROXIES"]);
  assert.deepEqual(warned({ ...env, GATEPOST_BASE_URL: "http://localhost" }, Infinity), []);
});

test("a missing or empty secret key gets a warning", () => {
  for (const key of [undefined, ""]) {
    assert.deepEqual(warned({ GATEPOST_SECRET_KEY: key }, Infinity), ["GATEPOST_SECRET_KEY"]);
  }
});

test("a database file that others can read gets a warning", (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeFileSync(path, "");
  for (const [mode, expected] of [[0o644, 1], [0o640, 1], [0o600, 0]] as const) {
    chmodSync(path, mode);
    assert.equal(warned({ GATEPOST_DATABASE: path }, Infinity).length, expected, mode.toString(8));
  }
});

test("a folder in place of the database gets no warning about its mode", (t) => {
  const folder = makeFolder(t);
  chmodSync(folder, 0o755);
  assert.deepEqual(warned({ GATEPOST_DATABASE: folder }, Infinity), []);
});

test("a cluster that is reached over a network without TLS gets a warning", () => {
  const cases = [
    ["rqlite://127.0.0.1:4001,[::1]:4001,localhost:4003", 0],
    ["rqlite://127.0.0.1:4001,10.0.0.7:4001", 1],
    ["rqlites://10.0.0.7:4001", 0],
  ] as const;
  for (const [address, expected] of cases) {
    const names = warned({ GATEPOST_DATABASE: address }, Infinity);
    assert.deepEqual(names, Array(expected).fill("GATEPOST_DATABASE"), address);
  }
});

test("a limit of open files too low for connections and callbacks gets a warning", () => {
  const env = { GATEPOST_CALLBACK_CONCURRENCY: "1000" };
  assert.deepEqual(warned(env, 7_099), ["ulimit -n"]);
  assert.deepEqual(warned(env, 7_100), []);
  assert.deepEqual(warned({}, 7_099), []);
  const place = { GATEPOST_CONSOLE: "127.0.0.1:9090" };
  assert.deepEqual(warned(place, 7_099), ["ulimit -n"], "the second listener has connections too");
});
