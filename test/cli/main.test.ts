import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { revision, version } from "../../src/version.ts";
import { CLI_SOURCE, openCommandLine, readJson } from "../helpers/command_line.ts";

test("help goes to standard output where it was asked for, with exit code 0", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  for (const args of ["--help", "user --help", "user add --help", "help check"]) {
    const { code, stdout, stderr } = await cli.run(...args.split(" "));

    assert.deepEqual([code, stderr], [0, ""], args);
    assert.match(stdout, /^Usage {2}gatepost /m);
    assert.doesNotMatch(stdout, /\u001b/);
  }
});

test("help goes to standard error where a command is unfinished, with exit code 2", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  for (const args of [[], ["user"]]) {
    const { code, stdout, stderr } = await cli.run(...args);

    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, /^Usage {2}gatepost /m);
  }
});

test("help works with a bad configuration", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true, env: { GATEPOST_PORT: "x" } });

  assert.equal((await cli.run("user", "add", "--help")).code, 0);
  assert.equal((await cli.run("--version")).code, 0);
});

test("--version prints name, version and revision", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });

  assert.equal((await cli.run("--version")).stdout, `gatepost ${version}@${revision}\n`);
});

test("wrong usage is one line, exit 2, and nothing is done", async (t) => {
  const cli = await openCommandLine(t, { isNew: true, ownProcess: true });
  for (const args of ["usr add alice", "user ad alice", "user add alice --admn", "user add"]) {
    const { code, stdout, stderr } = await cli.run(...args.split(" "));

    assert.deepEqual([code, stdout], [2, ""], args);
    assert.match(stderr, /^gatepost: .*\n$/);
  }
  assert.match((await cli.run("check")).stdout, /there is none yet/);
});

test("a wrong value is exit 2, whatever the command, and says what would be right", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  const lines = [
    "user list --limit 0",
    "app add Shop --url https://shop.example/ --grant foo",
    "event list --status gone",
    "audit list --since yesterday",
    "delivery list --status gone",
    "delivery resend --failed --until soon",
    "event dispatch gatepost.x 1",
    "token --scope a\"b",
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await cli.run(...line.split(" "));
    const json = await cli.run(...line.split(" "), "--json");

    assert.deepEqual([code, stdout], [2, ""], line);
    assert.match(stderr, /must|is one of|RFC 3339|reserved|start with/i, line);
    assert.deepEqual([json.code, readJson(json)["status"]], [2, 400], line);
  }
});

test("JSON output escapes characters that move the cursor or turn the text", async (t) => {
  const cli = await openCommandLine(t);
  const data = { text: "a\u009b2J\u202eb\u007f" };
  const args = ["event", "dispatch", "order.created", JSON.stringify(data), "--json"];
  const { id } = readJson(await cli.run(...args));
  const { stdout } = await cli.run("event", "show", String(id), "--json");

  assert.deepEqual(JSON.parse(stdout).data, data);
  assert.match(stdout, /^[\x20-\x7e]*\n$/);
});

test("a closed standard output is not an error", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  const child = cli.start("check");
  child.stdout?.destroy();
  let errors = "";
  child.stderr?.on("data", (part) => errors += String(part));

  const [code] = await once(child, "close");

  assert.deepEqual([code, errors], [0, ""]);
});

test("a database that cannot be used is one line, exit 1, with --json too", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  writeFileSync(cli.databasePath, "no database at all");

  for (const args of [["user", "list"], ["user", "list", "--json"], ["user", "add", "alice"]]) {
    const { code, stdout, stderr } = await cli.run(...args);

    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    assert.match(stderr, /^gatepost: .*not an SQLite database.*\n$/);
  }
});

test("a database that cannot be written is one line, exit 1, and nothing is stored", async (t) => {
  const cli = await openCommandLine(t, { ownProcess: true });
  await cli.run("user", "add", "alice");
  const other = new DatabaseSync(cli.databasePath);
  other.exec("BEGIN IMMEDIATE");

  const refused = await cli.run("user", "add", "bob");
  const problem = readJson(await cli.run("user", "add", "bob", "--json"));
  other.exec("ROLLBACK");
  other.close();

  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /^gatepost: .*(busy|locked).*Nothing was changed; try again\.\n$/);
  assert.equal(problem["type"], "urn:gatepost:problem:unavailable");
  const { items } = readJson(await cli.run("user", "list", "--json"));
  assert.ok(Array.isArray(items) && items.length === 1);
});

test("a standard output that cannot be written is exit 1 and one line", () => {
  const full = openSync("/dev/full", "w");
  const { status, stderr } = spawnSync(process.execPath, [CLI_SOURCE, "--help"], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
  });
  closeSync(full);
  assert.equal(status, 1);
  assert.match(stderr, /^gatepost: the output could not be written: ENOSPC.*\n$/);
});
