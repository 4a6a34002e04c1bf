import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";

const PASSWORD = "correct horse battery";

test("user add reads a password from standard input and never prints it", async (t) => {
  const cli = await openCommandLine(t);

  const args = ["user", "add", "alice", "--password-stdin"];
  const added = await cli.runWith({ stdin: `${PASSWORD}\n` }, ...args);

  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /User alice has been added\./);
  assert.match(added.stdout, /^ {2}scopes +consumer$/m);
  assert.ok(!(added.stdout + added.stderr).includes(PASSWORD));
});

test("user add generates a password without a terminal, and prints it once", async (t) => {
  const cli = await openCommandLine(t);

  const added = await cli.run("user", "add", "alice");

  const [, password = ""] = /^ {2}password +(\S+)$/m.exec(added.stdout) ?? [];
  assert.ok(password.length >= 20, added.stdout);
  assert.equal(added.stdout.split(password).length, 2);
  assert.ok(!added.stderr.includes(password));
});

test("user add --json prints the backend's record, and the password to stderr", async (t) => {
  const cli = await openCommandLine(t);

  const added = await cli.run("user", "add", "alice", "--json");

  const { id, created_at, ...rest } = readJson(added);
  const expected = { username: "alice", scopes: ["consumer"], rate: null, status: "active" };
  assert.deepEqual(rest, expected);
  assert.match(String(id), /^u[0-9a-z]+$/);
  assert.ok(!Number.isNaN(Date.parse(String(created_at))));
  assert.match(added.stderr, /^password: \S{20,}$/m);
});

/** Options of `user add`, and the scopes that they give. */
const SCOPES: readonly (readonly [options: readonly string[], scopes: readonly string[]])[] = [
  [[], ["consumer"]],
  [["--scope", "a b"], ["a", "b"]],
  [["--scope", "a,b"], ["a", "b"]],
  [["--scope", "a", "--scope", "b"], ["a", "b"]],
  [["--scope", ""], []],
  [["--admin"], ["backend", "consumer"]],
  [["--admin", "--scope", "a consumer"], ["backend", "consumer", "a"]],
];

test("user add gives the scopes that its options say", async (t) => {
  const cli = await openCommandLine(t);
  for (const [index, [options, scopes]] of SCOPES.entries()) {
    const added = await cli.run("user", "add", `user${index}`, "--json", ...options);

    assert.deepEqual(readJson(added)["scopes"], scopes, options.join(" "));
  }
});

test("user add removes only one line break from the end of standard input", async (t) => {
  const cli = await openCommandLine(t);
  // Seven bytes are too short; every case is eight bytes after the break is gone.
  const add = (stdin: string, name: string) =>
    cli.runWith({ stdin }, "user", "add", name, "--password-stdin");
  const good = ["passwor\n\n", "passwor\r\r\n", " passwo \n", "password"];
  for (const [index, stdin] of good.entries()) {
    const added = await add(stdin, `user${index}`);

    assert.equal(added.code, 0, JSON.stringify(stdin) + added.stderr);
  }
  const short = await add("passwor\n", "short");

  assert.equal(short.code, 2);
  assert.match(short.stderr, /password: Must be 8 to 1024 bytes long\./);
});

test("user add reports every error at once, and adds nobody", async (t) => {
  const cli = await openCommandLine(t);

  const refused = await cli.runWith(
    { stdin: "secret!" },
    ...["user", "add", "a b", "--scope", 'x"y', "--password-stdin"],
  );

  assert.equal(refused.code, 2);
  assert.equal(refused.stdout, "");
  for (const field of ["username", "password", "scopes 1"]) {
    assert.match(refused.stderr, new RegExp(`^  ${field}: Must be `, "m"));
  }
  assert.ok(!refused.stderr.includes("secret!"));
  assert.deepEqual(readItems(await cli.run("user", "list", "--json")), []);
});

test("user add --json prints a refusal as the backend's problem", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  const refused = await cli.run("user", "add", "ALICE", "--json");

  assert.equal(refused.code, 1);
  const { type, status } = readJson(refused);
  assert.deepEqual([type, status], ["urn:gatepost:problem:conflict", 409]);
});

test("user list shows a table of names, ids, states and scopes", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  await cli.run("user", "add", "bob", "--admin");

  const { stdout } = await cli.run("user", "list");

  const lines = stdout.trimEnd().split("\n");
  assert.match(lines[0] ?? "", /^NAME +ID +STATUS +SCOPES +CREATED$/);
  assert.match(lines[1] ?? "", /^bob +u\w+ +active +backend consumer +[\d-]{10} [\d:]{8}Z$/);
  assert.match(lines[2] ?? "", /^alice +u\w+ +active +consumer /);
  assert.doesNotMatch(stdout, /\u001b/);
});

test("user list continues at the cursor that it printed", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");
  await cli.run("user", "add", "bob");

  const first = await cli.run("user", "list", "--limit", "1");
  const [, cursor = ""] = /--cursor (\w+)/.exec(first.stderr) ?? [];
  const second = await cli.run("user", "list", "--limit", "1", "--cursor", cursor);

  assert.match(first.stdout, /bob/);
  assert.match(second.stdout, /alice/);
  assert.equal(second.stderr, "");
});

test("user set changes a user by name or id, and only what is given", async (t) => {
  const cli = await openCommandLine(t);
  const { id } = readJson(await cli.run("user", "add", "alice", "--json", "--scope", "a b"));

  const scoped = await cli.run("user", "set", String(id), "--scope", "a", "--json");
  const disabled = await cli.run("user", "set", "Alice", "--status", "disabled", "--json");

  for (const [result, status] of [[scoped, "active"], [disabled, "disabled"]] as const) {
    const user = readJson(result);
    assert.deepEqual([user["scopes"], user["status"]], [["a"], status]);
  }
});

test("user add and user set can set, change and remove a rate", async (t) => {
  const cli = await openCommandLine(t);
  const rateAfter = async (...args: string[]) =>
    readJson(await cli.run("user", ...args, "--json"))["rate"];

  assert.equal(await rateAfter("add", "alice", "--rate", "100/1m"), "100/1m");
  assert.equal(await rateAfter("set", "alice", "--rate", "5/1s"), "5/1s");
  assert.equal(await rateAfter("set", "alice", "--scope", "consumer"), "5/1s");
  assert.match((await cli.run("user", "show", "alice")).stdout, /^ {2}rate +5\/1s$/m);
  assert.equal(await rateAfter("set", "alice", "--rate", "none"), null);

  const refused = await cli.run("user", "set", "alice", "--rate", "often");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /^ {2}rate: Must be a rate such as 100\/1m/m);
});

test("user set --password generates a password without a terminal", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  const set = await cli.run("user", "set", "alice", "--password");

  assert.match(set.stdout, /^ {2}password +\S{20,}$/m);
});

test("user set without a change, or with a wrong status, exits 2", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  assert.equal((await cli.run("user", "set", "alice")).code, 2);
  assert.equal((await cli.run("user", "set", "alice", "--status", "asleep")).code, 2);
});

test("user disable disables a user, and user delete deletes a user once", async (t) => {
  const cli = await openCommandLine(t);
  await cli.run("user", "add", "alice");

  const disabled = await cli.run("user", "disable", "alice", "--json");
  const deleted = await cli.run("user", "delete", "alice", "--json");
  const again = await cli.run("user", "delete", "alice");

  assert.equal(readJson(disabled)["status"], "disabled");
  assert.deepEqual([deleted.code, deleted.stdout], [0, ""]);
  assert.deepEqual([again.code, again.stderr], [1, "gatepost: There is no such user.\n"]);
});

test("a user who is named like another's id is not confused with that user", async (t) => {
  const cli = await openCommandLine(t);
  const { id } = readJson(await cli.run("user", "add", "alice", "--json"));
  const mimic = readJson(await cli.run("user", "add", String(id), "--json"));
  const setById = async (user: unknown) =>
    readJson(await cli.run("user", "set", String(user), "--scope", "a", "--json"));

  const changed = await setById(id);
  const other = await setById(mimic["id"]);

  assert.equal(changed["username"], "alice");
  assert.equal(other["username"], id);
});

test("no command makes a missing database; one line names it", async (t) => {
  const cli = await openCommandLine(t, { isNew: true });
  const lines = ["user list", "user add a", "user delete a", "key rotate", "event dispatch x 1"];
  for (const line of lines) {
    const refused = await cli.run(...line.split(" "));

    assert.equal(refused.code, 1, line);
    assert.ok(refused.stderr.includes(cli.databasePath), line);
    assert.match(refused.stderr, /^[^\n]+\n$/);
  }
  assert.ok(!existsSync(cli.databasePath));
});

test("every error of the configuration is reported, exit 2, before a database opens", async (t) => {
  const cli = await openCommandLine(t, { isNew: true });

  const refused = await cli.runWith(
    { env: { GATEPOST_PORT: "x", GATEPOST_CRON: "maybe", GATEPOST_SECRET_KEY: "hush" } },
    ...["user", "add", "alice"],
  );

  assert.equal(refused.code, 2);
  for (const name of ["GATEPOST_PORT", "GATEPOST_CRON", "GATEPOST_SECRET_KEY"]) {
    assert.match(refused.stderr, new RegExp(`^${name}: `, "m"));
  }
  assert.ok(!refused.stderr.includes("hush"));
  assert.ok(!existsSync(cli.databasePath));
});

test("changes by the command line are audited with the actor cli and no address", async (t) => {
  const cli = await openCommandLine(t);
  const { id } = readJson(await cli.run("user", "add", "alice", "--json"));
  await cli.run("user", "disable", "alice");

  const database = new DatabaseSync(cli.databasePath, { readOnly: true });
  const sql = "SELECT actor, action, target, address FROM audit ORDER BY id";
  const entries = database.prepare(sql).all();
  database.close();

  assert.deepEqual(entries.map((entry) => ({ ...entry })), [
    { actor: "cli", action: "user.create", target: id, address: null },
    { actor: "cli", action: "user.change", target: id, address: null },
  ]);
});
