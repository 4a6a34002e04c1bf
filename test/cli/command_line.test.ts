import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCommandLine } from "../../src/cli/command_line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";

function parse(...args: readonly string[]) {
  return parseCommandLine(args, COMMANDS);
}

/** Every documented command line. */
const COMMAND_LINES: readonly (readonly string[])[] = [
  ["user", "add", "NAME"],
  ["user", "add", "NAME", "--password-stdin", "--scope", "a b", "--admin"],
  ["user", "list"],
  ["user", "set", "NAME"],
  ["user", "disable", "NAME"],
  ["user", "delete", "NAME"],
  ["app", "add", "NAME", "--url", "URL"],
  [
    ..."app add NAME --url URL --public --grant password --grant refresh_token".split(" "),
    ..."--redirect-uri https://a.example/1 --redirect-uri https://a.example/2".split(" "),
    ..."--trusted --resource-server --scope".split(" "),
    "a b",
  ],
  ["app", "list"],
  ["app", "set", "CLIENT_ID"],
  ["app", "disable", "CLIENT_ID"],
  ["app", "rotate-secret", "CLIENT_ID"],
  ["app", "delete", "CLIENT_ID"],
  ["event", "dispatch", "NAME", "{}"],
  ["event", "list"],
  ["delivery", "resend", "ID"],
  ["delivery", "resend", "--failed"],
  ["key", "list"],
  ["key", "rotate"],
  ["grant", "revoke", "--user", "NAME"],
  ["grant", "revoke", "--app", "CLIENT_ID"],
  ["backup", "FILE"],
  ["check"],
];

for (const args of COMMAND_LINES) {
  test(`parseCommandLine() accepts ${args.join(" ")}, also with --json`, () => {
    assert.equal(parse(...args).kind, "run");
    assert.equal(parse(...args, "--json").kind, "run");
  });
}

test("parseCommandLine() collects repeated options in order", () => {
  const line = parse("app", "add", "--grant", "b", "Shop", "--grant=a", "--url", "URL");

  assert.ok(line.kind === "run");
  assert.deepEqual(line.values.list("grant"), ["b", "a"]);
  assert.equal(line.values.argument("NAME"), "Shop");
  assert.equal(line.values.text("url"), "URL");
  assert.equal(line.values.flag("public"), undefined);
});

test("parseCommandLine() collects repeated arguments, or none", () => {
  const filesOf = (...args: readonly string[]) => {
    const line = parse("test", ...args);
    return line.kind === "run" ? line.values.list("FILES") : line.kind;
  };

  assert.deepEqual([filesOf(), filesOf("b", "a")], [[], ["b", "a"]]);
});

test("parseCommandLine() treats what follows -- as an argument, even if it starts with -", () => {
  const line = parse("event", "dispatch", "x", "--", "-5");

  assert.ok(line.kind === "run");
  assert.equal(line.values.argument("JSON"), "-5");
});

test("parseCommandLine() distinguishes a flag, its --no- form and its absence", () => {
  const flagOf = (...args: readonly string[]) => {
    const line = parse("app", "set", "a1", ...args);
    return line.kind === "run" ? line.values.flag("trusted") : line.kind;
  };

  assert.deepEqual(
    [flagOf("--trusted"), flagOf("--no-trusted"), flagOf()],
    [true, false, undefined],
  );
});

const NOUNS = [...new Set(COMMANDS.map(({ words: [noun] }) => noun))];

/** A command line, and what its error must say. */
const WRONG: readonly (readonly [args: string, says: RegExp])[] = [
  ["usr add x", /"usr".*one of .*user/],
  ["xyzzy", new RegExp(`"xyzzy".*${NOUNS.join(", ")}`)],
  ["app rotate a1", /"rotate".*rotate-secret/],
  ["user remove x", /"remove".*add, list, show, sessions, set, disable, delete/],
  ["user add", /needs NAME/],
  ["user add a b", /takes only NAME/],
  ["user list a", /takes no arguments/],
  ["app add Shop", /needs --url URL/],
  ["app add Shop --url", /--url/],
  ["event dispatch name", /needs JSON/],
  ["backup", /needs FILE/],
  ["user add x --pasword-stdin", /no option "--pasword-stdin"/],
  ["user add x -p", /no option "-p"/],
  ["event dispatch x -5", /no option "-5"; put -- before such an argument/],
  ["app add Shop --url --public", /Did you forget .*--url.*use '--url=-XYZ'/],
  ["user add x --no-admin", /no option "--no-admin"/],
  ["user list --no-json", /no option "--no-json"/],
  ["user add x --password-stdin=y", /--password-stdin/],
  ["grant revoke --user ann --user bob", /takes --user only once/],
  ["app add Shop --url=a --scope b --scope c --url=b", /takes --url only once/],
  ["app add caf\ufffd --url a", /an argument is not UTF-8/],
  ["--json user list", /options come after the command/],
  ["user --json list", /options come after the command/],
  ["help xyzzy", /"xyzzy"/],
];

for (const [args, says] of WRONG) {
  test(`parseCommandLine() refuses ${args} in one line`, () => {
    const line = parse(...args.split(" "));

    assert.ok(line.kind === "wrong", line.kind);
    assert.match(line.message, says);
    assert.match(line.message, /--help\)$/);
    assert.doesNotMatch(line.message, /\n/);
  });
}

test("parseCommandLine() treats an empty argument as missing", () => {
  const line = parse("user", "delete", "");
  assert.ok(line.kind === "wrong");
  assert.match(line.message, /^user delete needs NAME /);
});

test("parseCommandLine() shows neither a surplus argument nor an option's value", () => {
  const lines = [
    parse("user", "add", "alice", "hunter22secret"),
    parse("user", "set", "alice", "--password=hunter22secret"),
    parse("user", "add", "alice", "--pass=hunter22secret"),
    parse("user", "set", "alice", "--password", "hunter22secret"),
  ];

  for (const line of lines) {
    assert.ok(line.kind === "wrong");
    assert.doesNotMatch(line.message, /hunter22secret/);
  }
});

test("parseCommandLine() shows no control characters of the command line", () => {
  const line = parse("us\u001b[2Jer");

  assert.ok(line.kind === "wrong");
  assert.doesNotMatch(line.message, /\p{Cc}/u);
});

/** A command line that asks for help, and the words of the command that the help describes. */
const HELP: readonly (readonly [args: string, words: readonly string[]])[] = [
  ["--help", []],
  ["-h", []],
  ["help", []],
  ["user --help", ["user"]],
  ["help user", ["user"]],
  ["user add --help", ["user", "add"]],
  ["help user add", ["user", "add"]],
  ["help user delete alice", ["user", "delete"]],
  ["app add Shop -h", ["app", "add"]],
  ["app add --unknown --help", ["app", "add"]],
  ["check --help", ["check"]],
];

for (const [args, words] of HELP) {
  test(`parseCommandLine() finds the help that ${args} asks for`, () => {
    assert.deepEqual(parse(...args.split(" ")), { kind: "help", words });
  });
}

test("parseCommandLine() reports an unfinished command as incomplete, not as wrong", () => {
  assert.deepEqual(parse(), { kind: "incomplete", words: [] });
  assert.deepEqual(parse("user"), { kind: "incomplete", words: ["user"] });
});
