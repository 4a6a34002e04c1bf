import assert from "node:assert/strict";
import { spawnSync, type StdioOptions } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { test, type TestContext } from "node:test";
import { poolSize } from "../../src/base/password.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { runNode, startServer } from "../helpers/process.ts";

const SERVE = import.meta.resolve("../../src/app/serve.ts");

/** Whether the import of a module makes Node load its fetch. */
async function loadsFetch(specifier: string): Promise<boolean> {
  const program = [
    `await import(${JSON.stringify(specifier)});`,
    `console.log(process.moduleLoadList.some((name) => name.includes("undici")));`,
  ].join("\n");
  const { code, stdout, stderr } = await runNode(["--input-type=module", "--eval", program]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test("importing the server does not load Node's fetch, which takes long to load", async () => {
  assert.equal(await loadsFetch(SERVE), false);
  assert.equal(await loadsFetch("node:http"), true, "otherwise the test proves nothing");
});

/** Runs the server with one output on a full disk; returns its status and its other output. */
function runOnFullDisk(output: "stdout" | "stderr", args: string[], env: Record<string, string>) {
  const full = openSync("/dev/full", "w");
  const stdio = ["ignore", ...["stdout", "stderr"].map((name) => name === output ? full : "pipe")];
  const { status, stdout, stderr } = spawnSync(process.execPath, [SOURCE_ENTRY, ...args], {
    stdio: stdio as StdioOptions, env, encoding: "utf8",
  });
  closeSync(full);
  return [status, stdout ?? stderr];
}

test("a bad configuration or argument exits 2, even where stderr cannot be written", () => {
  assert.deepEqual(runOnFullDisk("stderr", [], { GATEPOST_PORT: "x" }), [2, ""]);
  assert.deepEqual(runOnFullDisk("stderr", ["--port"], {}), [2, ""]);
});

test("--version exits 1 with one line where its output cannot be written", () => {
  const [status, stderr] = runOnFullDisk("stdout", ["--version"], {});
  assert.equal(status, 1);
  assert.match(String(stderr), /^gatepost: the output could not be written: ENOSPC.*\n$/);
});

// Only Linux shows the names of threads.
const onLinux = process.platform === "linux" ? test : () => {};

/** The number of threads in the pool of a server that has hashed a password. */
async function countPoolThreads(t: TestContext, env: Record<string, string>): Promise<number> {
  const server = await startServer({ entry: SOURCE_ENTRY, env });
  t.after(() => server.kill());
  const folder = `/proc/${server.pid}/task`;
  const names = readdirSync(folder).map((id) => readFileSync(`${folder}/${id}/comm`, "utf8"));
  return names.filter((name) => name === "libuv-worker\n").length;
}

onLinux("the thread pool is as large as poolSize() says", async (t) => {
  assert.equal(await countPoolThreads(t, {}), poolSize(availableParallelism()));
});

onLinux("the thread pool is as large as UV_THREADPOOL_SIZE says", async (t) => {
  assert.equal(await countPoolThreads(t, { UV_THREADPOOL_SIZE: "5" }), 5);
});

test("the log names the signal that stops the server, and says when it has stopped", async (t) => {
  const server = await startServer({ entry: SOURCE_ENTRY });
  t.after(() => server.kill());
  assert.equal(await server.stop("SIGINT"), 0);
  const ends = server.lines.map((line) => JSON.parse(line)).slice(-2);
  assert.deepEqual(ends.map(({ msg, signal }) => [msg, signal]),
    [["stopping", "SIGINT"], ["stopped", undefined]]);
});
