import { EventEmitter } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { locateDatabase } from "./engine.ts";
import type { RunResult } from "./process.ts";

/** Does in this process what a new process would do, without the second that its start takes. */
export async function runHere(
  program: (host: NodeJS.Process) => Promise<void>,
  { argv, stdin = "", env }: {
    readonly argv: readonly string[];
    readonly stdin?: string;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): Promise<RunResult> {
  const address = env["GATEPOST_DATABASE"];
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const ending: { exitCode?: number } = {};
  const host = Object.assign(new EventEmitter(), ending, {
    argv,
    env: { ...env, ...address && { GATEPOST_DATABASE: await locateDatabase(address) } },
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout,
    stderr,
    exit(code: number): void {
      host.exitCode = code;
      host.emit("exit");
    },
  });
  const output = Promise.all([text(stdout), text(stderr)]);
  await program(host as unknown as NodeJS.Process);
  stdout.end();
  stderr.end();
  const [shown, noted] = await output;
  return { code: host.exitCode ?? null, stdout: shown, stderr: noted };
}
