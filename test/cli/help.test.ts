import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCommandLine } from "../../src/cli/command_line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { formatHelp } from "../../src/cli/help.ts";
import { VARIABLES } from "../../src/config.ts";

const bold = (text: string) => text;

function help(words: readonly string[], columns?: number): string {
  return formatHelp(words, COMMANDS, { columns, bold });
}

test("the overview names every command with its purpose, and the exit codes", () => {
  const text = help([]);

  for (const { words, purpose } of COMMANDS) {
    assert.ok(text.includes(`  ${words.join(" ")} `), words.join(" "));
    assert.ok(text.includes(purpose), purpose);
  }
  assert.match(text, /0 +done\n +1 +failed\n +2 +wrong usage/);
  assert.match(text, /--version/);
});

const VERBS = COMMANDS.filter(({ words }) => words.length === 2);

for (const noun of new Set(VERBS.map(({ words: [noun = ""] }) => noun))) {
  test(`the help of ${noun} names its verbs and gives an example`, () => {
    const text = help([noun]);

    const verbs = COMMANDS.filter(({ words }) => words[0] === noun);
    assert.ok(verbs.length > 0);
    for (const { words } of verbs) assert.ok(text.includes(`  ${words.join(" ")}`));
    assert.match(text, new RegExp(`For example\\n  gatepost ${noun} `));
  });
}

for (const command of COMMANDS) {
  const name = command.words.join(" ");

  test(`the help of ${name} has its purpose, arguments, options and an example`, () => {
    const text = help(command.words);

    assert.ok(text.startsWith(`${command.purpose}.\n`));
    assert.match(text, new RegExp(`^Usage  gatepost ${name}.* \\[options\\]$`, "m"));
    for (const argument of command.arguments ?? []) {
      assert.match(text, new RegExp(`^  ${argument.name} `, "m"));
    }
    for (const option of [...Object.keys(command.options ?? {}), "json", "help"]) {
      assert.match(text, new RegExp(`^  --(\\[no-\\])?${option}\\b`, "m"));
    }
    assert.match(text, new RegExp(`^  (\\S.* )?gatepost ${name}`, "m"));
  });

  test(`the examples of ${name} are valid command lines`, () => {
    for (const example of command.examples) {
      const typed = example.replace(/^.*?\bgatepost /, "");
      const args = typed.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
      const bare = args.map((arg) => arg.replace(/^(['"])(.*)\1$/, "$2"));
      const line = parseCommandLine(bare, COMMANDS);

      assert.equal(line.kind, "run", typed);
      assert.deepEqual(line.kind === "run" && line.command.words, command.words);
    }
  });
}

test("no line of any help but an example is wider than 88 columns", () => {
  for (const words of [[], ["user"], ["app"], ...COMMANDS.map((command) => command.words)]) {
    for (const line of help(words).split("\n")) {
      if (!line.includes("gatepost ")) assert.ok(line.length <= 88, line);
    }
  }
});

test("every argument and option of a command has a description", () => {
  for (const command of COMMANDS) {
    for (const { name, meaning } of command.arguments ?? []) assert.ok(meaning, name);
    for (const [name, { meaning }] of Object.entries(command.options ?? {})) {
      assert.match(meaning, /^[^;]/, `${command.words.join(" ")} --${name}`);
    }
  }
});

test("the help of an option with fixed values names them", () => {
  assert.match(help(["series", "list"]), /deliveries, logins, tokens or overdue: what is counted/);
  assert.match(help(["series", "list"]), /minute or hour: the length/);
  assert.match(help(["issuer", "add"]), /scope, scp or roles: the claim/);
  assert.match(help(["subscription", "list"]), /newest or worst: /);
  assert.match(help(["user", "set"]), /--status STATUS +active or disabled\n/);
});

test("the help fits a narrow terminal", () => {
  for (const line of help(["app", "add"], 60).split("\n")) {
    // The name of a grant type is a single word, and may be longer.
    const isWord = /^ *\S+$/.test(line);
    if (!isWord && !line.includes("gatepost ")) assert.ok(line.length <= 60, line);
  }
});

test("every variable that a help names is one that the server reads", () => {
  const known = VARIABLES.map(({ name }) => name);
  const texts = [help([]), ...COMMANDS.map(({ words }) => help(words))];
  for (const [name] of texts.join("\n").matchAll(/GATEPOST_[A-Z_]+/g)) {
    assert.ok(known.includes(name), name);
  }
});
