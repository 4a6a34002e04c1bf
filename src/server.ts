import { availableParallelism } from "node:os";
import { runtimeError } from "./base/runtime.ts";

// What an operator starts. Nothing else is imported before the runtime is known to be able to.
const fault = runtimeError(process.versions.node);
if (fault === undefined) {
  const { serve } = await import("./app/serve.ts");
  await serve(process, availableParallelism());
} else {
  process.stderr.write(`${fault}\n`);
  process.exitCode = 1;
}
