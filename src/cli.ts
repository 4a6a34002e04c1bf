#!/usr/bin/env node
import { keepCompiled } from "./base/compile_cache.ts";
import { runtimeError } from "./base/runtime.ts";

// What an operator administers with. Nothing else is imported before the runtime is known.
const error = runtimeError(process.versions.node);
if (error === undefined) {
  keepCompiled(process.env);
  const { main } = await import("./cli/main.ts");
  await main(process);
} else {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
}
