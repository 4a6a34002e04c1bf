import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouter } from "../../src/api/router.ts";
import { backendOperations } from "../../src/app/operations.ts";
import type { CommandContext } from "../../src/cli/command.ts";
import { parseCommandLine } from "../../src/cli/command_line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { configOf } from "../helpers/config.ts";

const OPERATIONS = backendOperations(
  { config: {} } as Parameters<typeof backendOperations>[0], // none of them runs
);

test("each operation of the backend is called by the example of a command", async () => {
  const find = createRouter(OPERATIONS);
  const called = new Set<string>();
  const asked = { canAsk: false, readStdin: async () => "{}", note() {} };
  for (const example of COMMANDS.flatMap(({ examples }) => examples)) {
    const typed = example.replace(/^.*?\bgatepost /, "").match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
    const args = typed.map((arg) => arg.replace(/^(['"])(.*)\1$/, "$2"));
    const line = parseCommandLine(args, COMMANDS);
    assert.ok("values" in line, example);
    const context = {
      config: configOf({}),
      values: line.values,
      terminal: asked,
      isJson: true,
      print() {},
      openBackend: async () => ({ database: { query: async () => [{ id: "u1", scopes: "[]" }] } }),
      interruptible: (work: (signal: AbortSignal) => unknown) => work(AbortSignal.any([])),
      call: async (method: string, target: string) => {
        const operation = find(method, target.split("?")[0] ?? "")?.operation;
        if (operation) called.add(operation.id);
        return { items: [] };
      },
    } as unknown as CommandContext;
    const { command } = line;
    // Others work on files, or start the server.
    const isOfResource = COMMANDS.some(({ words }) => words[0] === command.words[0] &&
      words.length === 2);
    if (isOfResource) await Promise.resolve(command.run(context)).catch(() => {});
  }
  assert.deepEqual(OPERATIONS.map(({ id }) => id).filter((id) => !called.has(id)), []);
});
