import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { type CommandLine, openCommandLine, readItems } from "../helpers/command_line.ts";

/** Runs the command line as somebody at a terminal, who types `answer` when asked. */
async function runAtTerminal(cli: CommandLine, args: readonly string[], answer: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
  const shown: string[] = [];
  const output = new PassThrough().on("data", (part) => {
    shown.push(String(part));
    if (String(part).includes("[y/N]")) stdin.write(answer);
  });
  const { promise: code, resolve } = Promise.withResolvers<number>();
  const host = Object.assign(new EventEmitter(), {
    stdin,
    stdout: output,
    stderr: output,
    argv: ["node", "gatepost", ...args],
    env: { GATEPOST_DATABASE: cli.databasePath },
    exit: resolve,
  });
  await main(host as unknown as NodeJS.Process);
  return { code: await code, text: shown.join("") };
}

const namesOf = async (cli: CommandLine) =>
  readItems(await cli.run("user", "list", "--json")).map(({ username }) => username);

test("user delete asks at a terminal, and does nothing without a yes", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  const refused = await runAtTerminal(cli, ["user", "delete", "alice"], "\r");
  assert.equal(refused.code, 1);
  assert.match(refused.text, /Delete user alice permanently\? \[y\/N\] [^]*Nothing was changed/);
  assert.deepEqual(await namesOf(cli), ["alice"]);

  const meant = await runAtTerminal(cli, ["user", "delete", "alice"], "y\r");
  assert.equal(meant.code, 0, meant.text);
  assert.deepEqual(await namesOf(cli), []);
});

test("no question is asked with --yes, or without a terminal", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  await cli.run("user", "add", "bob");

  const { code, text } = await runAtTerminal(cli, ["user", "delete", "alice", "--yes"], "");
  assert.equal(code, 0, text);
  assert.doesNotMatch(text, /\[y\/N\]/);
  assert.equal((await cli.run("user", "delete", "bob")).code, 0);
  assert.deepEqual(await namesOf(cli), []);
});

const ASKING = [
  ["app", "delete", "a1"],
  ["subscription", "delete", "s1"],
  ["key", "withdraw", "k1"],
  ["grant", "revoke", "--user", "alice"],
  ["grant", "revoke", "--app", "a1"],
];

for (const args of ASKING) {
  test(`${args.slice(0, 3).join(" ")} asks at a terminal`, async (t) => {
    const cli = await openCommandLine(t);
    const { code, text } = await runAtTerminal(cli, args, "n\r");
    assert.equal(code, 1);
    assert.match(text, /\? \[y\/N\] [^]*Nothing was changed/);
  });
}

test("grant revoke of one grant asks nothing", async (t) => {
  const cli = await openCommandLine(t);
  const { text } = await runAtTerminal(cli, ["grant", "revoke", "g1"], "n\r");
  assert.doesNotMatch(text, /\[y\/N\]/);
});
