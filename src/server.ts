import { availableParallelism } from "node:os";
import { keepCompiled } from "./base/compile_cache.ts";
import { runtimeError } from "./base/runtime.ts";

// What an operator starts. Nothing else is imported before the runtime is known to be able to.
const error = runtimeError(process.versions.node);
if (error === undefined) {
  keepCompiled(process.env);
  const { serve } = await import("./app/serve.ts");
  await serve(process, availableParallelism());
} else {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
}
