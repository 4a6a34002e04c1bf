import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { obtainPassword } from "../../src/cli/user.ts";
import { createTerminal, type Terminal } from "../../src/cli/terminal.ts";

/** A process at a terminal: what is typed goes in, what is shown comes out. */
function openFakeTerminal({ isTTY = true } = {}) {
  const stdin = Object.assign(new PassThrough(), { isTTY, isRaw: false, setRawMode });
  function setRawMode(isRaw: boolean) {
    stdin.isRaw = isRaw;
    return stdin;
  }
  const shown: string[] = [];
  const collect = () =>
    Object.assign(new PassThrough().on("data", (part) => shown.push(String(part))), { isTTY });
  const host = Object.assign(new EventEmitter(), { stdin, stdout: collect(), stderr: collect() });
  return {
    terminal: createTerminal(host as unknown as NodeJS.Process),
    stdin,
    text: () => shown.join(""),
    /** Types each text when the next question has been asked. */
    async type(...texts: readonly string[]) {
      for (const [index, text] of texts.entries()) {
        while ((shown.join("").match(/: /g) ?? []).length <= index) await nextLoop();
        stdin.write(text);
      }
    },
  };
}

function obtain(terminal: Terminal, isFromStdin = false): Promise<string> {
  return obtainPassword({ terminal, values: { flag: () => isFromStdin } }, "alice");
}

const nextLoop = () => new Promise((resolve) => setImmediate(resolve));

test("a password is asked for twice and never shown", async () => {
  const { terminal, type, text, stdin } = openFakeTerminal();

  const typing = type("pässword\r", "pässword\r");
  const given = await obtain(terminal);
  await typing;

  assert.equal(given, "pässword");
  assert.equal(text(), "Password for alice: \nRepeat the password: \n");
  assert.equal(stdin.isRaw, false);
});

test("a password can be corrected while it is typed, and pasted with its repetition", async () => {
  const { terminal, type } = openFakeTerminal();

  const typing = type("passwordx\u007f\rpassword\r");
  const given = await obtain(terminal);
  await typing;

  assert.equal(given, "password");
});

test("a password that is too short, or differs the second time, is asked for again", async () => {
  const { terminal, type, text } = openFakeTerminal();

  const typing = type("short\r", "password\r", "passw0rd\r", "password\r", "password\r");
  const given = await obtain(terminal);
  await typing;

  assert.equal(given, "password");
  assert.match(text(), /Must be 8 to 1024 bytes long\.[^]*The passwords differ\./);
});

test("three bad tries end the command", async () => {
  const { terminal, type } = openFakeTerminal();

  const typing = type("a\r", "b\r", "c\r");
  await assert.rejects(obtain(terminal), /nothing was changed/);
  await typing;
});

const ENDS = [
  ["Ctrl+C", "\u0003"],
  ["Ctrl+D", "\u0004"],
  ["Ctrl+D after letters", "passw\u0004"],
] as const;

for (const [name, key] of ENDS) {
  test(`${name} at a question ends the command and restores the terminal`, async () => {
    const { terminal, type, stdin } = openFakeTerminal();

    const typing = type(key);
    await assert.rejects(obtain(terminal), /Interrupted; nothing was/);
    await typing;

    assert.equal(stdin.isRaw, false);
  });
}

test("Ctrl+C or Ctrl+D at a question ends its line", async () => {
  for (const key of ["\u0003", "\u0004"]) {
    const { terminal, stdin, text } = openFakeTerminal();
    const asked = terminal.confirm("Really?");
    stdin.write(key);
    await assert.rejects(asked, /Interrupted; nothing was/);
    assert.match(text(), /Really\? \[y\/N\] [^\n]*\n$/);
  }
});

test("standard input that is not UTF-8, or far too long, is refused", async () => {
  for (const bytes of [Buffer.from([0xff, 0xfe]), Buffer.alloc(1_048_577, "a")]) {
    const { terminal, stdin } = openFakeTerminal({ isTTY: false });
    stdin.end(bytes);

    await assert.rejects(obtain(terminal, true), { name: "UsageError" });
  }
});

const REPLIES = [["y\r", true], ["Yes\r", true], ["n\r", false], ["\r", false]] as const;
for (const [typed, expected] of REPLIES) {
  test(`a question that is answered by ${JSON.stringify(typed)} is ${expected}`, async () => {
    const { terminal, type, text, stdin } = openFakeTerminal();

    const typing = type(typed);
    const isMeant = await terminal.confirm("Sure: remove\u001b[2J it?");
    await typing;

    assert.equal(isMeant, expected);
    assert.match(text(), /Sure: remove\ufffd\[2J it\? \[y\/N\] /);
    assert.equal(stdin.isRaw, false);
  });
}
