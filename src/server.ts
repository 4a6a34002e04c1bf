import { availableParallelism } from "node:os";
import { keepCompiled } from "./base/compile_cache.ts";
import { runtimeError, STOP_SIGNALS } from "./base/runtime.ts";

// What an operator starts. Nothing else is imported before the runtime is known to be able to.
const error = runtimeError(process.versions.node);
if (error === undefined) {
  // Until serve() listens: a container's first process is ended by none without a listener.
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => process.listenerCount(signal) > 1 || process.exit());
  }
  keepCompiled(process.env);
  const { serve } = await import("./app/serve.ts");
  await serve(process, availableParallelism());
} else {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
}
