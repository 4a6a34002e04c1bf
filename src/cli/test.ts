import { existsSync, realpathSync } from "node:fs";
import { extname } from "node:path";
import type { Command } from "./command.ts";
import { UsageError } from "./failure.ts";

export const TEST_COMMAND: Command = {
  words: ["test"],
  purpose: "Run the tests of endpoint modules",
  arguments: [{
    name: "FILES",
    meaning: "files or patterns (default: all tests below this folder that `node --test` finds)",
    isOptional: true,
    isRepeatable: true,
  }],
  details: [
    "Runs the test runner of the Node that this program runs on. Tests call endpoints with " +
      '`import { call } from "gatepost/testing"`, which need not be installed. Arguments after ' +
      "-- are passed to the runner unchanged. The exit code is the runner's.",
  ],
  examples: [
    "gatepost test",
    "gatepost test endpoints/orders.test.ts",
    "gatepost test -- --watch",
  ],
  run({ config, host, values }) {
    const hooks = new URL(`test_hooks${extname(import.meta.filename)}`, import.meta.url);
    const endpoints = config.endpointsFolder ?? "endpoints"; // the default of `gatepost dev`
    if (existsSync(endpoints)) hooks.searchParams.set("endpoints", realpathSync(endpoints));
    const files = values.list("FILES") ?? [];
    const args = [host.execPath, ...host.execArgv, "--import", hooks.href, "--test", ...files];
    host.execve?.(host.execPath, args, { ...host.env });
    throw new UsageError("this system cannot replace a process");
  },
};
