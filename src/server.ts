import { availableParallelism } from "node:os";
import { importQuickly } from "./base/quick_import.ts";
import { endOnSignal, runProgram } from "./base/runtime.ts";

// The program that an operator starts.
await runProgram(process, async () => {
  endOnSignal(process);
  const { serve } = await importQuickly(() => import("./app/serve.ts"), process.env);
  await serve(process, availableParallelism());
});
