import { createInterface } from "node:readline";
import { styleText } from "node:util";
import { Failure } from "./failure.ts";
import { visible } from "./table.ts";

/** Where a person, or a script in their place, is spoken with. */
export interface Terminal {
  /** Whether somebody can be asked. */
  readonly canAsk: boolean;
  /** The width of what is printed; undefined where that goes to no terminal. */
  readonly columns: number | undefined;
  /** Writes a line of the answer to stdout. */
  print(text: string): void;
  /** Writes a line beside the answer to stderr. */
  note(text: string): void;
  /** Makes printed text bold where it goes to a terminal. */
  bold(text: string): string;
  /** Whether progress is shown: stderr is a terminal. */
  readonly showsProgress: boolean;
  /** Replaces the line of progress, where it is shown; undefined clears it. */
  progress(text: string | undefined): void;
  /** All of stdin as UTF-8; throws Failure where it is none, or longer than a mebibyte. */
  readStdin(): Promise<string>;
  /** Asks whether something is to be done: only y and yes are a yes. Throws Failure on Ctrl+C. */
  confirm(question: string): Promise<boolean>;
  /** Asks questions one after the other without showing the answers; throws Failure on Ctrl+C. */
  askHidden<Result>(dialogue: (ask: Ask) => Promise<Result>): Promise<Result>;
}

/** Asks one question and returns the line typed. */
export type Ask = (question: string) => Promise<string>;

const MAX_STDIN_BYTES = 1_048_576;
const CLEAR_LINE = "\r\u001b[K";

/** Opens the terminal of a process. */
export function createTerminal(host: NodeJS.Process): Terminal {
  const { stdin, stdout, stderr } = host;
  let isProgressing = false;

  function progress(text: string | undefined): void {
    if (!stderr.isTTY || (text === undefined && !isProgressing)) return;
    isProgressing = text !== undefined;
    stderr.write(`${CLEAR_LINE}${(text ?? "").slice(0, (stderr.columns || 80) - 1)}`);
  }

  return {
    canAsk: stdin.isTTY === true,
    columns: stdout.isTTY ? stdout.columns || 80 : undefined,
    showsProgress: stderr.isTTY === true,
    progress,
    print(text) {
      progress(undefined);
      stdout.write(`${text}\n`);
    },
    note(text) {
      progress(undefined);
      stderr.write(`${text}\n`);
    },
    bold: (text) => styleText("bold", text, { stream: stdout }),
    async readStdin() {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of stdin) {
        const part: Buffer = Buffer.from(chunk);
        chunks.push(part);
        bytes += part.length;
        if (bytes > MAX_STDIN_BYTES) throw new Failure("Standard input is longer than 1 MiB.");
      }
      try {
        return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
      } catch (cause) {
        throw new Failure("Standard input is not UTF-8.", { cause });
      }
    },
    async confirm(question) {
      const text = `${visible(question)} [y/N] `;
      const answer = await converse((ask) => ask(text), { output: stderr });
      return /^y(es)?$/i.test(answer.trim());
    },
    askHidden: (dialogue) => converse(dialogue, {}),
  };

  /** Without an output nothing that is typed is shown. */
  async function converse<Result>(
    dialogue: (ask: Ask) => Promise<Result>,
    { output }: { readonly output?: NodeJS.WritableStream },
  ): Promise<Result> {
    // As a terminal Ctrl+C becomes an event.
    const options = { input: stdin, terminal: true, historySize: 0 };
    const lines = createInterface(output ? { ...options, output } : options);
    const waiting: ((line: string) => void)[] = [];
    const typed: string[] = []; // a paste may hold several lines
    lines.on("line", (line) => {
      const answer = waiting.shift();
      if (answer) answer(line);
      else typed.push(line);
    });
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const end = () => reject(new Failure("Interrupted; nothing was changed."));
    // By itself readline takes Ctrl+D for a key like any other where something has been typed.
    const onKey = (_: unknown, key?: { ctrl?: boolean; name?: string }) => {
      if (key?.ctrl && key.name === "d") end();
    };
    stdin.on("keypress", onKey);
    lines.once("SIGINT", end).once("close", end);
    const ask: Ask = async (question) => {
      lines.setPrompt(question); // shown again where the line is edited
      if (output) lines.prompt();
      else stderr.write(question);
      try {
        return typed.shift() ?? await Promise.race([
          ended,
          new Promise<string>((resolve) => waiting.push(resolve)),
        ]);
      } finally {
        if (!output) stderr.write("\n"); // the one that was typed is not shown either
      }
    };
    try {
      return await Promise.race([ended, dialogue(ask)]);
    } finally {
      stdin.off("keypress", onKey);
      lines.close();
    }
  }
}
