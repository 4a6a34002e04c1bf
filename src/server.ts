import { availableParallelism } from "node:os";
import { keepCompiled } from "./base/compile_cache.ts";
import { endOnSignal, runProgram } from "./base/runtime.ts";

// What an operator starts.
await runProgram(process, async () => {
  endOnSignal(process);
  keepCompiled(process.env);
  const { serve } = await import("./app/serve.ts");
  await serve(process, availableParallelism());
});
