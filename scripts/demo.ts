/**
 * Shows all of Gatepost at work, and checks that it keeps its promises.
 *
 *   npm run demo                runs all steps once; exit 1 at the first difference
 *   npm run demo -- --serve     keeps everything running for a browser, until Ctrl+C
 *   --server FILE               starts this program instead of dist/server.js
 */
import { once } from "node:events";
import { RESEND_DELAYS_MS } from "./demo/journey.ts";
import { runJourney } from "./demo/run_journey.ts";
import { serveDemo } from "./demo/serve.ts";
import { type DemoStage, openStage } from "./demo/stage.ts";
import { createStory } from "./demo/story.ts";
import { readOptions } from "./read_options.ts";

const LIMIT_MS = 30_000;
const SERVE_LIMIT_MS = 8 * 3_600_000;
const INTERRUPTED = 130;

/** Never resolves; rejects at the limit, or with an InterruptedError on SIGINT or SIGTERM. */
function waitForEnd(limitMs: number): Promise<never> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`not finished within ${limitMs / 1000} s`)), limitMs).unref();
  });
  const signals = ["SIGINT", "SIGTERM"].map(async (signal) => {
    await once(process, signal);
    throw new InterruptedError(signal);
  });
  return Promise.race([late, ...signals]);
}

class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}

/** Runs all steps; returns the exit code. */
async function show(stage: DemoStage, ended: Promise<never>): Promise<number> {
  const story = createStory(process.stdout);
  const startedMs = performance.now();
  await Promise.race([runJourney(stage, story), ended]);
  story.end((performance.now() - startedMs) / 1000);
  return 0;
}

async function main(): Promise<number> {
  const { values } = readOptions({
    options: { serve: { type: "boolean", default: false }, server: { type: "string" } },
  });
  const ended = waitForEnd(values.serve ? SERVE_LIMIT_MS : LIMIT_MS);
  // The promise may reject before it is awaited.
  ended.catch(() => {});
  const opening = openStage({
    entry: values.server,
    resendDelays: RESEND_DELAYS_MS.map((ms) => `${ms}ms`).join(","),
  });
  try {
    const stage = await Promise.race([opening, ended]);
    return await (values.serve ? serveDemo(stage, ended) : show(stage, ended));
  } catch (error) {
    if (error instanceof InterruptedError) return values.serve ? 0 : INTERRUPTED;
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`\nThe demo stopped: ${why}\n`);
    return 1;
  } finally {
    await opening.then((stage) => stage.close(), () => {});
  }
}

// The demo ends if its reader does (`| head`); its child processes end with it.
process.stdout.once("error", () => process.exit(1));
// After an interruption the demo does not wait for work under way.
process.exit(await main());
