import { escapeControls } from "../base/log.ts";
import { STOP_SIGNALS } from "../base/runtime.ts";
import { parseConfig } from "../config.ts";
import { problemResponse } from "../http/respond.ts";
import { revision, version } from "../version.ts";
import { type Backend, openBackend } from "./backend.ts";
import type { Command, CommandContext, Values } from "./command.ts";
import { parseCommandLine } from "./command_line.ts";
import { COMMANDS } from "./commands.ts";
import { explain, Failure, findProblem, UsageError } from "./failure.ts";
import { formatHelp } from "./help.ts";
import { createTerminal, type Terminal } from "./terminal.ts";

const EXIT_DONE = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2; // also for a wrong configuration

/** Runs the command, and ends the process with one of the exit codes above. */
export async function main(host: NodeJS.Process): Promise<void> {
  // EPIPE is no error: a reader such as `head -1` stops when it has seen enough.
  let lost: string | undefined;
  host.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== "EPIPE") lost = message;
    host.stdout.destroy();
  });
  host.stderr.on("error", () => host.stderr.destroy());
  const code = await runCommandLine(host, createTerminal(host));
  await new Promise<void>((resolve) => host.stdout.write("", () => resolve()));
  if (lost !== undefined) host.stderr.write(`gatepost: the output could not be written: ${lost}\n`);
  // An endpoint module may have left a timer or a socket open.
  host.exit(lost === undefined ? code : EXIT_FAILED);
}

async function runCommandLine(host: NodeJS.Process, terminal: Terminal): Promise<number> {
  const parsed = parseCommandLine(host.argv.slice(2), COMMANDS);
  switch (parsed.kind) {
    case "help":
      terminal.print(formatHelp(parsed.words, COMMANDS, terminal));
      return EXIT_DONE;
    case "version":
      terminal.print(`gatepost ${version}@${revision}`);
      return EXIT_DONE;
    case "incomplete":
      terminal.note(formatHelp(parsed.words, COMMANDS, { ...terminal, bold: (text) => text }));
      return EXIT_USAGE;
    case "wrong":
      terminal.note(`gatepost: ${parsed.message}`);
      return EXIT_USAGE;
    case "run":
      return runCommand(parsed.command, parsed.values, host, terminal);
    default:
      return parsed satisfies never;
  }
}

async function runCommand(
  command: Command,
  values: Values,
  host: NodeJS.Process,
  terminal: Terminal,
): Promise<number> {
  const result = parseConfig(host.env, command.readSecret);
  if (!result.ok) {
    terminal.note(result.errors.join("\n"));
    return EXIT_USAGE;
  }
  const { config } = result;
  const isJson = values.flag("json") ?? false;
  let backend: Promise<Backend> | undefined;
  const onCreate = (path: string) => terminal.note(`The database ${path} has been created.`);
  const context: CommandContext = {
    config,
    values,
    host,
    terminal,
    isJson,
    openBackend: (create) => backend ??= openBackend(config, create ? onCreate : undefined),
    call: async (...request) => (await context.openBackend()).call(...request),
    print(response, show) {
      if (!isJson) terminal.print(show(response ?? {}));
      else if (response) terminal.print(escapeControls(JSON.stringify(response)));
    },
    interruptible: (work) => runInterruptible(host, work),
  };
  try {
    const question = values.flag("yes") ? undefined : command.confirm?.(values);
    if (question !== undefined && terminal.canAsk && !await terminal.confirm(question)) {
      throw new Failure("Nothing was changed.");
    }
    await command.run(context);
    return EXIT_DONE;
  } catch (error) {
    return report(error, command, context);
  } finally {
    await backend?.then(({ close }) => close(), () => {}); // a failure to open is reported above
  }
}

function report(error: unknown, { words }: Command, { isJson, terminal }: CommandContext): number {
  if (error instanceof UsageError) {
    terminal.note(`gatepost: ${error.message} (gatepost ${words.join(" ")} --help)`);
    return EXIT_USAGE;
  }
  const problem = findProblem(error);
  if (isJson && problem) terminal.print(String(problemResponse(problem, "cli").body));
  else terminal.note(`gatepost: ${explain(error)}`);
  return problem?.status === 400 || problem?.status === 413 ? EXIT_USAGE : EXIT_FAILED;
}

async function runInterruptible<Result>(
  host: NodeJS.Process,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) host.exit(EXIT_FAILED);
    controller.abort(new Failure("Interrupted."));
  };
  for (const signal of STOP_SIGNALS) host.on(signal, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of STOP_SIGNALS) host.off(signal, interrupt);
  }
}
