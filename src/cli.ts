#!/usr/bin/env node
import { keepCompiled } from "./base/compile_cache.ts";
import { endOnSignal, runProgram } from "./base/runtime.ts";

// What an operator administers with.
await runProgram(process, async () => {
  if (process.argv[2] === "serve") endOnSignal(process);
  keepCompiled(process.env);
  const { main } = await import("./cli/main.ts");
  await main(process);
});
