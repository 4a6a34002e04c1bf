#!/usr/bin/env node
import { importQuickly } from "./base/quick_import.ts";
import { endOnSignal, runProgram } from "./base/runtime.ts";

// The command `gatepost`.
await runProgram(process, async () => {
  if (process.argv[2] === "serve") endOnSignal(process);
  const { main } = await importQuickly(() => import("./cli/main.ts"), process.env);
  await main(process);
});
