import assert from "node:assert/strict";
import { test } from "node:test";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";

test("a resource is added, listed, shown, changed and deleted", async (t) => {
  const cli = await openCommandLine(t);
  const url = "https://mcp.example/mcp";
  const added = readJson(await cli.run("resource", "add", url, "--scope", "files x", "--json"));
  assert.deepEqual([added["url"], added["scopes"]], [url, ["files", "x"]]);
  const id = String(added["id"]);
  assert.deepEqual(readItems(await cli.run("resource", "list", "--json")), [added]);
  const set = await cli.run("resource", "set", id, "--scope", "files");
  assert.equal(set.code, 0, set.stderr);
  const shown = readJson(await cli.run("resource", "show", id, "--json"));
  assert.deepEqual(shown["scopes"], ["files"]);
  assert.equal((await cli.run("resource", "delete", id, "--yes")).code, 0);
  assert.equal((await cli.run("resource", "show", id)).code, 1);
});

test("resource add refuses a known or wrong URL, and one of this service", async (t) => {
  const cli = await openCommandLine(t);
  const add = (url: string) => cli.run("resource", "add", url, "--scope", "files");
  assert.equal((await add("https://mcp.example")).code, 0);
  assert.equal((await add("https://mcp.example/")).code, 1);
  assert.notEqual((await add("http://127.0.0.1:8080/x")).code, 0);
  assert.notEqual((await add("ftp://mcp.example")).code, 0);
});

test("resource add names the URL of the resource in its message", async (t) => {
  const cli = await openCommandLine(t);
  const { stdout } = await cli.run("resource", "add", "https://mcp.example", "--scope", "files");
  assert.match(stdout, /^Resource https:\/\/mcp\.example has been added\.$/m);
});
