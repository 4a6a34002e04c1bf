import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createDataFolder, runCli, startServer } from "./process.ts";

/** Writes a small program that replaces the server. */
async function standIn(t: TestContext, source: string): Promise<string> {
  const folder = await createDataFolder();
  t.after(() => rm(folder, { recursive: true }));
  const entry = join(folder, "stand_in.mjs");
  await writeFile(entry, source);
  return entry;
}

const LISTENS = `
  import { createServer } from "node:http";
  const server = createServer((_, response) => response.end(JSON.stringify(process.env)));
  console.log(JSON.stringify({ msg: "starting" }));
  server.listen(Number(process.env.GATEPOST_PORT), "127.0.0.1", () => {
    console.error("a word of warning");
    const url = "http://127.0.0.1:" + server.address().port;
    console.log(JSON.stringify({ msg: "listening", url }));
  });
  process.on("SIGTERM", () => process.exit(0));`;

test("startServer() gives the address and the exit code, and removes the data", async (t) => {
  const server = await startServer({ entry: await standIn(t, LISTENS), env: { GATEPOST_X: "1" } });
  const env = await (await fetch(server.url)).json();
  assert.equal(env.GATEPOST_X, "1");
  assert.equal(env.GATEPOST_DATABASE, join(server.folder, "gatepost.db"));
  assert.equal(env.NODE_TEST_CONTEXT, undefined);
  assert.equal(server.lines.length, 2);
  assert.ok(existsSync(server.folder));
  assert.equal(await server.stop(), 0);
  assert.match(server.stderr(), /a word of warning/);
  assert.equal(existsSync(server.folder), false);
});

test("startServer() keeps a folder that it was given, also after a kill", async (t) => {
  const folder = await createDataFolder();
  t.after(() => rm(folder, { recursive: true }));
  const server = await startServer({ entry: await standIn(t, LISTENS), folder });
  await server.kill();
  assert.ok(existsSync(folder));
  assert.throws(() => process.kill(server.pid, 0), { code: "ESRCH" });
  assert.equal(await server.stop(), null);
});

test("startServer() throws the output of a server that does not start", async (t) => {
  const entry = await standIn(t, `console.error("port taken"); process.exit(1);`);
  await assert.rejects(startServer({ entry }), /did not start \(exit 1\):\nport taken/);
});

test("runCli() hands over arguments, environment and input and returns all output", async (t) => {
  const entry = await standIn(t, `
    let input = "";
    for await (const chunk of process.stdin) input += chunk;
    console.log(JSON.stringify([process.argv.slice(2), process.env.GATEPOST_X, input]));
    console.error("done");
    process.exit(2);`);
  const env = { GATEPOST_X: "y" };
  const result = await runCli(["user", "add"], { entry, stdin: "secret\n", env });
  assert.deepEqual(JSON.parse(result.stdout), [["user", "add"], "y", "secret\n"]);
  assert.deepEqual([result.code, result.stderr], [2, "done\n"]);
});

test("runCli() survives a program that does not read its input", async (t) => {
  const entry = await standIn(t, "process.stdin.destroy(); process.exitCode = 1;");
  const result = await runCli([], { entry, stdin: "x".repeat(1_000_000) });
  assert.equal(result.code, 1);
});
