import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseConfig } from "../src/config.ts";
import {
  ADMIN_PASSWORD,
  configOf,
  errorOf,
  errorsOf,
  METRICS_TOKEN,
  SECRET_KEY,
} from "./helpers/config.ts";

const OTHER_KEY = Buffer.alloc(32, 7).toString("base64");

test("parseConfig() never repeats a secret in an error", () => {
  const cases: [name: string, value: string][] = [
    ["SECRET_KEY", "hunter2-hunter2"],
    ["SECRET_KEY", `${SECRET_KEY}hunter2`],
    ["METRICS_TOKEN", "hunter2"],
    ["METRICS_TOKEN", 'hunter2 hunter2 hunter2 "'],
    ["ADMIN_PASSWORD", "hunter2"],
    ["ADMIN_PASSWORD", "hunter2".repeat(200)],
    ["DATABASE_CREDENTIALS", "hunter2"],
    ["DATABASE", "rqlite://admin:hunter2@127.0.0.1:4001"],
    ["DATABASE", "admin:hunter2@127.0.0.1:4001"],
    ["BASE_URL", "https://admin:hunter2@api.example.com"],
    ["BASE_URL", "https://admin:p@hunter2@api.example.com/x?"],
    ["BASE_URL", "https:admin:hunter2@api.example.com"],
    ["CORS_ORIGINS", "https://admin:hunter2@a.example"],
    ["DATABASE", "postgres://db.example/gatepost?password=hunter2"],
    ["DATABASE", "rqlite://127.0.0.1:4001/?pass=hunter2"],
    ["DATABASE", "rqlite://admin:hunter2?x#hunter2@127.0.0.1:4001"],
    ["BASE_URL", "https://api.example.com/?mail=a@b.example&token=hunter2"],
    ["CORS_ORIGINS", "https://a.example,https://b.example/#hunter2"],
    ["ADMIN_PASSWROD", "hunter2"],
    // The secret itself in place of a path.
    ["DATABASE_CREDENTIALS_FILE", "admin:hunter2"],
    ["SECRET_KEY_FILE", `hunter2/${SECRET_KEY}`],
    ["SECRET_KEY_FILE", `/hunter2/${SECRET_KEY}`], // as base64 may begin and end
    ["SECRET_KEY_FILE", `/hunter2/${SECRET_KEY}\n`],
    ["ADMIN_PASSWORD_FILE", "hunter2".repeat(200)],
  ];
  for (const [name, value] of cases) assert.doesNotMatch(errorOf(name, value), /hunter2/);
});

test("parseConfig() refuses a GATEPOST_SECRET_KEY that is not 32 bytes in base64", () => {
  const cases = [
    "a2V5",
    Buffer.alloc(31, 7).toString("base64"),
    Buffer.alloc(33, 7).toString("base64"),
    Buffer.alloc(32, 7).toString("hex"),
    Buffer.alloc(32, 0xff).toString("base64url"),
    SECRET_KEY.slice(0, -1),
    `${SECRET_KEY.slice(0, -2)}d=`,
    `!${SECRET_KEY}`,
  ];
  for (const value of cases) assert.match(errorOf("SECRET_KEY", value), /32 bytes in base64/);
});

test("GATEPOST_SECRET_KEY may list several keys, whose order is kept", () => {
  const { secretKeys } = configOf({ GATEPOST_SECRET_KEY: `${SECRET_KEY}, ${OTHER_KEY}` });
  assert.deepEqual(secretKeys?.map((key) => Buffer.from(key).toString("base64")), [
    SECRET_KEY,
    OTHER_KEY,
  ]);
  for (const value of [`${SECRET_KEY},`, `${SECRET_KEY},hunter2`]) {
    assert.doesNotMatch(errorOf("SECRET_KEY", value), /hunter2/);
  }
});

test("parseConfig() accepts a GATEPOST_ADMIN_PASSWORD of 8 to 1024 bytes", () => {
  for (const password of ["x".repeat(8), "ü".repeat(4), "x".repeat(1_024), "ü".repeat(512)]) {
    assert.equal(configOf({ GATEPOST_ADMIN_PASSWORD: password }).adminPassword, password);
  }
  for (const password of ["x".repeat(7), "x".repeat(1_025), "ü".repeat(513)]) {
    assert.match(errorOf("ADMIN_PASSWORD", password), /8 to 1024 bytes/);
  }
});

test("parseConfig() accepts only a GATEPOST_METRICS_TOKEN that fits a Bearer header", () => {
  for (const token of ["x".repeat(16), "Az09-._~+/Az09-._~==", "x".repeat(1_024)]) {
    assert.equal(configOf({ GATEPOST_METRICS_TOKEN: token }).metricsToken, token);
  }
  for (const token of ["x".repeat(15), "x".repeat(1_025), "x y".repeat(9), "==".repeat(9)]) {
    assert.match(errorOf("METRICS_TOKEN", token), /16 to 1024/);
  }
});

test("each secret may come from a file, whose last line break is ignored", () => {
  const files: Record<string, string> = {
    "/run/key": `${SECRET_KEY}\n`,
    "/run/token": `${METRICS_TOKEN}\r\n`,
    "/run/password": ADMIN_PASSWORD,
  };
  const result = parseConfig({
    GATEPOST_SECRET_KEY_FILE: "/run/key",
    GATEPOST_METRICS_TOKEN_FILE: "/run/token",
    GATEPOST_ADMIN_PASSWORD_FILE: "/run/password",
  }, (path) => files[path] ?? "");
  assert.ok(result.ok);
  const { secretKeys, metricsToken, adminPassword } = result.config;
  assert.equal(Buffer.from(secretKeys?.[0] ?? []).toString("base64"), SECRET_KEY);
  assert.deepEqual([metricsToken, adminPassword], [METRICS_TOKEN, ADMIN_PASSWORD]);
});

test("a line break at the end of a secret's variable is ignored", () => {
  const { adminPassword } = configOf({ GATEPOST_ADMIN_PASSWORD: `${ADMIN_PASSWORD}\n` });
  assert.equal(adminPassword, ADMIN_PASSWORD);
});

test("the file of a secret must be UTF-8, with or without a byte order mark", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "password");
  const env = { GATEPOST_ADMIN_PASSWORD_FILE: file };
  writeFileSync(file, `\ufeff${ADMIN_PASSWORD}\n`);
  assert.equal(configOf(env).adminPassword, ADMIN_PASSWORD);
  writeFileSync(file, Buffer.from("pässwörter", "latin1"));
  const [error = ""] = errorsOf(env);
  assert.match(error, /^GATEPOST_ADMIN_PASSWORD_FILE: cannot be read: .*password is not UTF-8$/);
});

test("an unreadable file of a secret is an error, and so are variable and file at once", () => {
  const [missing = "", ...more] = errorsOf({ GATEPOST_METRICS_TOKEN_FILE: "/none/here" });
  assert.match(missing, /^GATEPOST_METRICS_TOKEN_FILE: cannot be read: ENOENT.*\/none\/here/);
  assert.deepEqual(more, []);
  // Reading it would never end.
  assert.deepEqual(errorsOf({ GATEPOST_METRICS_TOKEN_FILE: "/dev/zero" }), [
    "GATEPOST_METRICS_TOKEN_FILE: cannot be read: /dev/zero is a device",
  ]);
  const result = parseConfig(
    { GATEPOST_METRICS_TOKEN: METRICS_TOKEN, GATEPOST_METRICS_TOKEN_FILE: "/run/token" },
    () => METRICS_TOKEN,
  );
  assert.ok(!result.ok);
  assert.match(result.errors.join("\n"), /^GATEPOST_METRICS_TOKEN: GATEPOST_METRICS_TOKEN_FILE is/);
});

test("an empty file of a secret is an error", () => {
  for (const nothing of ["", "\n", "\r\n"]) {
    const result = parseConfig({ GATEPOST_SECRET_KEY_FILE: "/run/key" }, () => nothing);
    assert.ok(!result.ok);
    assert.deepEqual(result.errors, ["GATEPOST_SECRET_KEY_FILE: /run/key is empty"]);
  }
});

test("an error in a secret's file names the variable of the file, and not the content", () => {
  const result = parseConfig({ GATEPOST_SECRET_KEY_FILE: "/run/key" }, () => "hunter2");
  assert.ok(!result.ok);
  assert.match(result.errors.join("\n"), /^GATEPOST_SECRET_KEY_FILE: its value is not 32 bytes/);
  assert.doesNotMatch(result.errors.join("\n"), /hunter2/);
});

test("only secrets are read from files", () => {
  assert.match(errorOf("PORT_FILE", "/run/port"), /no such variable/);
});
