// On SQLite alone: it is about the file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { SECRET_KEY } from "../helpers/config.ts";
import { writeFolder } from "../helpers/folder.ts";
import { PASSWORD, SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { CLI_ENTRY, createDataFolder, startServer } from "../helpers/process.ts";
import { openRaw, parseResponses } from "../helpers/raw_http.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { readObject } from "../helpers/responses.ts";
import { assertRefused, canLogIn, envOn, start, tryStartHere } from "./start_stage.ts";

const folder = await createDataFolder();
const open = (env: Readonly<Record<string, string>>) =>
  startServer({ entry: SOURCE_ENTRY, folder, env: { GATEPOST_SHARE_PORT: "on", ...env } });
// Two processes on one database and on the same ports. The second was started with another password
// when there was a user already. A test may stop a process that an earlier one has stopped.
const first = await open({
  GATEPOST_CONSOLE: "127.0.0.1:0",
  GATEPOST_ADMIN_PASSWORD: PASSWORD,
  GATEPOST_LOG_LEVEL: "error",
});
const line = first.lines.find((each) => each.includes('"listening"')) ?? "{}";
/** The console's host and port. */
const place = new URL(JSON.parse(line).console).host;
const second = await open({
  GATEPOST_CONSOLE: place,
  GATEPOST_ADMIN_PASSWORD: "another password",
  GATEPOST_PORT: new URL(first.url).port,
});
after(async () => {
  await Promise.all([first.kill(), second.kill()]);
  await rm(folder, { recursive: true });
});

test("GATEPOST_ADMIN_PASSWORD is used only for a database without users", async () => {
  assert.equal(second.stderr(), "");
  assert.ok(await canLogIn(second.url, PASSWORD));
  assert.equal(await canLogIn(second.url, "another password"), false);
});

test("the line \"listening\" is logged at every level", async () => {
  assert.equal(await first.stop(), 0);
  assert.deepEqual(first.lines.map((line) => JSON.parse(line).msg), ["listening"]);
});

test("GATEPOST_SHARE_PORT lets several processes listen on one port", async () => {
  assert.equal(await first.stop(), 0);
  assert.equal(second.url, first.url);
  assert.ok(await canLogIn(second.url, PASSWORD));
});

test("the console's own port is shared too, and an error names GATEPOST_CONSOLE", async (t) => {
  assert.equal(await first.stop(), 0);
  assert.equal((await createClient(`http://${place}`).get("/console")).status, 200);
  const reason = new RegExp(`^Gatepost cannot start: GATEPOST_CONSOLE: .*EADDRINUSE.*${place}\\n`);
  const env = { GATEPOST_CONSOLE: place, GATEPOST_ADMIN_PASSWORD: PASSWORD };
  assertRefused(await tryStartHere(await writeFolder(t, {}), env), reason);
});

test("a process that stops on a shared port still responds to requests on their way", async () => {
  assert.equal(await first.stop(), 0);
  const idle = await openRaw(Number(new URL(second.url).port));
  const request = "GET /system/health HTTP/1.1\r\nHost: a\r\n\r\n";
  let text = "";
  idle.on("data", (chunk) => text += String(chunk));
  idle.write(request);
  await once(idle, "data"); // kept alive
  const stopped = second.stop();
  while (!second.lines.some((line) => line.includes('"stopping"'))) await delay(10);
  idle.write(request);
  assert.equal(await stopped, 0);
  const [, last] = parseResponses(text);
  assert.deepEqual([last?.status, last?.headers["connection"]], [200, "close"]);
});

test("each risky setting is a warning in the log of the start", async (t) => {
  const folder = await writeFolder(t, {});
  const path = join(folder, "gatepost.db");
  await openSqliteDatabase(path).close();
  chmodSync(path, 0o644);
  const shell = `ulimit -n 1000; exec "$0" "$@"`;
  const child = spawn("sh", ["-c", shell, process.execPath, SOURCE_ENTRY], { env: envOn(folder) });
  t.after(() => child.kill("SIGKILL"));
  let lines = "";
  for await (const part of child.stdout) {
    lines += String(part);
    if (lines.includes("ulimit")) break;
  }
  const warnings = lines.split("\n").filter((line) => line.includes('"level":"warn"'));
  const [key = "", mode = "", limit = "", ...more] = warnings.map((line) => JSON.parse(line).msg);
  assert.match(key, /^GATEPOST_SECRET_KEY: /);
  assert.match(mode, /gatepost\.db \(mode 644\)/);
  assert.match(limit, /^ulimit -n: 1000 open files/);
  assert.deepEqual(more, []);
});

test("a generated password is shown once, on stderr, and works", async (t) => {
  const folder = await writeFolder(t, {});
  const server = await start(t, { folder });
  const [, password = ""] = /password (\S+)/.exec(server.stderr()) ?? [];
  assert.equal(server.stderr().split("\n").length, 2, "one line");
  assert.ok(password.length >= 20);
  assert.doesNotMatch(server.lines.join("\n"), new RegExp(password));
  assert.ok(await canLogIn(server.url, password));
  await server.stop();
  const again = await start(t, { folder });
  assert.equal(again.stderr(), "");
  assert.ok(await canLogIn(again.url, password));
});

test("two first starts on one database make one admin, whose password is shown once", async (t) => {
  const folder = await writeFolder(t, {});
  const servers = await Promise.all([start(t, { folder }), start(t, { folder })]);
  const shown = servers.flatMap((server) => server.stderr().match(/password \S+/g) ?? []);
  assert.equal(shown.length, 1, shown.join());
  const password = String(shown[0]).replace("password ", "");
  for (const { url } of servers) assert.ok(await canLogIn(url, password));
});

test("only their owner may read and write the database and its folder", async (t) => {
  const parent = await writeFolder(t, {});
  const database = join(parent, "new/gatepost.db");
  const server = await start(t, { folder: parent, env: { GATEPOST_DATABASE: database } });
  assert.equal(statSync(join(parent, "new")).mode & 0o777, 0o700);
  for (const name of readdirSync(join(parent, "new"))) {
    assert.equal(statSync(join(parent, "new", name)).mode & 0o077, 0, name);
  }
  assert.equal(await server.stop(), 0);
});

test("a locked server works, and has no access to anything outside", async (t) => {
  const folder = await writeFolder(t, {
    "endpoints/probe.js": PROBE,
    "outside.txt": "outside",
    key: `${SECRET_KEY}\n`,
  });
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const server = await start(t, {
    folder,
    entry: CLI_ENTRY,
    args: ["serve", "--locked"],
    env: {
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      GATEPOST_DATABASE: join(folder, "data/gatepost.db"),
      GATEPOST_ENDPOINTS: join(folder, "endpoints"),
      GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
      GATEPOST_SECRET_KEY_FILE: join(folder, "key"),
      NODE_V8_COVERAGE: undefined, // which it may not write
    },
  });
  const client = createClient(server.url);
  const login = await client.postJson("/consumer/login", { username: "admin", password: PASSWORD });
  const bearer = { authorization: `Bearer ${String(readObject(login)["token"])}` };

  const fields = { name: "App", url: "https://app.example", scopes: ["consumer", "probe"] };
  const app = readObject(await client.postJson("/backend/app", fields, bearer));
  const [id, secret] = [app["client_id"], app["client_secret"]].map(String);
  const form = { grant_type: "client_credentials" };
  const tokens = await client.postForm("/authorization/token", form, {
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
  });
  const own = { authorization: `Bearer ${String(readObject(tokens)["access_token"])}` };

  const subscription = { event: "probe.done", endpoint: `${receiver.url}/a` };
  assert.equal((await client.postJson("/consumer/subscription", subscription, bearer)).status, 201);
  const probe = await client.postJson("/probe", { outside: join(folder, "outside.txt") }, own);
  assert.deepEqual(readObject(probe), {
    "reads a file outside": "ERR_ACCESS_DENIED",
    "reads the list of users": "ERR_ACCESS_DENIED",
    "writes beside itself": "ERR_ACCESS_DENIED",
    "starts a process": "ERR_ACCESS_DENIED",
    "reads itself": "done",
  });
  const [request] = await receiver.waitFor(1, 5000, "/a");
  assert.equal(request?.body.toString(), '{"probed":true}');
  for (const path of ["/system/health", "/system/ready", "/system/about", "/openapi.json"]) {
    assert.equal((await client.get(path)).status, 200, path);
  }
  assert.match((await client.get("/system/metrics", bearer)).text, /^process_cpu_seconds_total/m);
  assert.equal(await server.stop(), 0);
  assert.doesNotMatch(server.lines.join("\n"), /"level":"(warn|error)"/);
});

const PROBE = `
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

function attempt(action) {
  try {
    const { error } = action() ?? {};
    if (error) throw error;
    return "done";
  } catch (error) {
    return error.code;
  }
}

export const probe = {
  method: "POST",
  path: "/probe",
  scope: "probe",
  emits: { "probe.done": "A probe was done" },
  handle({ body, dispatch }) {
    dispatch("probe.done", { probed: true });
    return {
      "reads a file outside": attempt(() => void readFileSync(body.outside)),
      "reads the list of users": attempt(() => void readFileSync("/etc/passwd")),
      "writes beside itself": attempt(() => writeFileSync(new URL("x.js", import.meta.url), "")),
      "starts a process": attempt(() => spawnSync("true")),
      "reads itself": attempt(() => void readFileSync(new URL(import.meta.url))),
    };
  },
};
`;
