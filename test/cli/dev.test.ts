import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "../../scripts/free_port.ts";
import { CLI_SOURCE } from "../helpers/command_line.ts";
import { runCli, type RunningServer, startServer } from "../helpers/process.ts";
import { until } from "../helpers/until.ts";

const PING = `import data from "./data.json" with { type: "json" };
export const ping = { method: "GET", path: "/ping", public: true, handle: () => data };
`;
const PONG = `export const pong = { method: "GET", path: "/pong", public: true, handle: () => 1 };`;

/** Starts `gatepost dev` on a new folder of endpoints, which `write` changes. */
async function develop(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
  nodeFlags: readonly string[] = [],
) {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-dev-"));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  write("endpoints/ping.ts", PING);
  write("endpoints/data.json", `"first"`);
  const options = { entry: CLI_SOURCE, args: ["dev"], folder, cwd: folder, env, nodeFlags };
  const server = await startServer(options);
  t.after(() => server.stop()); // killed, dev would leave its server behind
  let starts = 1;
  return {
    folder,
    server,
    write,
    /** Waits for the next start, and returns the status and body of a request. */
    async after(path: string) {
      starts++;
      await waitFor(() => startsOf(server).length >= starts, server);
      const response = await fetch(startsOf(server).at(-1) + path);
      return [response.status, response.ok ? await response.json() : undefined];
    },
    startCount: () => startsOf(server).length,
  };
}

/** The address of each start. */
function startsOf({ lines }: RunningServer): string[] {
  return lines.filter((line) => line.includes('"listening"')).map((line) => JSON.parse(line).url);
}

const waitFor = (holds: () => unknown, { lines, stderr }: RunningServer) =>
  until(holds, () => [...lines, stderr()].join("\n"));

test("dev serves ./endpoints, and restarts on a changed, new or removed file", async (t) => {
  const { folder, server, write, after } = await develop(t);
  assert.equal(await (await fetch(`${server.url}/ping`)).json(), "first");

  write("endpoints/data.json", `"second"`);
  assert.deepEqual(await after("/ping"), [200, "second"]);
  write("endpoints/ping.ts", PING.replace("=> data", "=> 7"));
  assert.deepEqual(await after("/ping"), [200, 7]);
  write("endpoints/more/pong.ts", PONG);
  assert.deepEqual(await after("/pong"), [200, 1]);
  rmSync(join(folder, "endpoints/more"), { recursive: true });
  assert.deepEqual(await after("/pong"), [404, undefined]);
  assert.equal(await server.stop(), 0);
});

test("dev tries to start its server again at the next change", async (t) => {
  const { server, write, after } = await develop(t);
  write("endpoints/ping.ts", "export const ping = {");
  await waitFor(() => server.stderr().includes("waiting for a change"), server);
  assert.match(server.stderr(), /ping\.ts.*SyntaxError/);
  write("endpoints/ping.ts", PING);
  assert.deepEqual(await after("/ping"), [200, "first"]);
  assert.equal(await server.stop("SIGINT"), 0);
});

test("dev ends at a signal while it waits for a change", async (t) => {
  const { server, write } = await develop(t);
  write("endpoints/ping.ts", "export const ping = {");
  await waitFor(() => server.stderr().includes("waiting for a change"), server);
  assert.equal(await server.stop(), 0);
});

test("dev does not restart on a change while it ends", async (t) => {
  const { server, write, after, startCount } = await develop(t);
  write("endpoints/slow.ts", `export const slow = { method: "GET", path: "/slow", public: true,
    handle: () => new Promise((resolve) => setTimeout(resolve, 1_500, 1)) };`);
  assert.deepEqual(await after("/ping"), [200, "first"]);
  const slow = fetch(`${startsOf(server).at(-1)}/slow`).catch(() => undefined);
  await sleep(300);
  const stopped = server.stop();
  await sleep(300);
  write("endpoints/data.json", `"second"`);
  assert.equal(await stopped, 0);
  assert.equal(startCount(), 2);
  await slow;
});

test("dev ends, and its server with it, when its folder is removed", async (t) => {
  const { folder, server } = await develop(t);
  rmSync(join(folder, "endpoints"), { recursive: true });
  await waitFor(() => server.stderr().includes("endpoints has been removed"), server);
  assert.equal(await server.stop(), 1);
});

test("dev does not restart for dot files, packages and databases in its folder", async (t) => {
  const env = { GATEPOST_DATABASE: "endpoints/data/own" };
  const { server, write, after, startCount } = await develop(t, env);
  write("endpoints/.orders.ts.swp", "x");
  write("endpoints/node_modules/a/index.js", "x");
  write("endpoints/shop.sqlite-wal", "x");
  await fetch(`${server.url}/ping`);
  // The restart after them shows that they were ignored.
  await sleep(500);
  assert.equal(startCount(), 1);
  write("endpoints/data.json", `"second"`);
  assert.deepEqual(await after("/ping"), [200, "second"]);
  assert.equal(startCount(), 2);
});

test("a debugger of dev is connected to its server, after a restart too", async (t) => {
  const port = await findFreePort();
  const { write, after } = await develop(t, {}, [`--inspect=${port}`]);
  const findDebugged = async (): Promise<unknown> => {
    const [first] = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
    return first.title;
  };
  assert.match(String(await findDebugged()), /src\/server\.ts$/);
  write("endpoints/data.json", `"second"`);
  assert.deepEqual(await after("/ping"), [200, "second"]);
  assert.match(String(await findDebugged()), /src\/server\.ts$/);
});

test("dev without a folder of endpoints exits 2 with one line", async () => {
  const env = { GATEPOST_ENDPOINTS: "no/such/folder" };
  const { code, stderr } = await runCli(["dev"], { entry: CLI_SOURCE, env });
  assert.equal(code, 2);
  assert.match(stderr, /^gatepost: there is no folder \/.*no\/such\/folder; [^\n]*\n$/);
});

test("the server becomes ready and stops under Node's own --watch", async (t) => {
  const server = await startServer({ nodeFlags: ["--watch"] });
  t.after(() => server.stop()); // killed, it would leave its server behind
  await waitFor(async () => (await fetch(`${server.url}/system/ready`)).ok, server);
  assert.equal(await server.stop(), 0);
});
