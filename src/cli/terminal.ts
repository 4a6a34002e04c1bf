import { createInterface } from "node:readline";
import { styleText } from "node:util";
import { decodeText } from "../base/utf8.ts";
import { Failure, UsageError } from "./failure.ts";
import { type Layout, visible } from "./table.ts";

/** How a command talks to a person or a script. */
export type Terminal = ReturnType<typeof createTerminal>;

/** Asks one question after the other; `ask` returns the line that was typed. */
type Dialogue<Result> = (ask: (question: string) => Promise<string>) => Promise<Result>;

const MAX_STDIN_BYTES = 1_048_576;

/** Opens the terminal of a process. */
export function createTerminal(host: NodeJS.Process) {
  const { stdin, stdout, stderr } = host;
  const layout: Layout = {
    columns: stdout.isTTY ? stdout.columns || 80 : undefined,
    bold: (text) => styleText("bold", text, { stream: stdout }),
  };

  return {
    ...layout,
    /** Whether there is a person to ask. */
    canAsk: stdin.isTTY === true,
    /** Writes a line of the result to stdout. */
    print: (text: string) => void stdout.write(`${text}\n`),
    /** Writes a line that is not part of the result to stderr. */
    note: (text: string) => void stderr.write(`${text}\n`),
    /** Reads all of stdin as text; throws UsageError if it is not UTF-8 or longer than 1 MiB. */
    async readStdin(): Promise<string> {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of stdin) {
        const part: Buffer = Buffer.from(chunk);
        chunks.push(part);
        bytes += part.length;
        if (bytes > MAX_STDIN_BYTES) throw new UsageError("standard input is longer than 1 MiB");
      }
      const text = decodeText(Buffer.concat(chunks));
      if (text === undefined) throw new UsageError("standard input is not UTF-8");
      return text;
    },
    /** Asks for confirmation; only y and yes mean yes. Throws Failure on Ctrl+C. */
    async confirm(question: string): Promise<boolean> {
      const typed = await converse((ask) => ask(`${visible(question)} [y/N] `), true);
      return /^y(es)?$/i.test(typed.trim());
    },
    /** Asks questions without showing what is typed; throws Failure on Ctrl+C. */
    askHidden: <Result>(dialogue: Dialogue<Result>) => converse(dialogue, false),
  };

  async function converse<Result>(dialogue: Dialogue<Result>, isShown: boolean): Promise<Result> {
    // As a terminal Ctrl+C becomes an event; without an output nothing that is typed is shown.
    const options = { input: stdin, terminal: true, historySize: 0 };
    const lines = createInterface(isShown ? { ...options, output: stderr } : options);
    const typed = lines[Symbol.asyncIterator](); // a paste may hold several lines
    const { promise: ended, reject } = Promise.withResolvers<never>();
    lines.once("close", () => reject(new Failure("Interrupted; nothing was changed.")));
    // By itself readline ends at Ctrl+D only where nothing has been typed.
    const onKey = (_: unknown, key?: { ctrl?: boolean; name?: string }) => {
      if (key?.ctrl && key.name === "d") lines.close();
    };
    stdin.on("keypress", onKey);
    async function ask(question: string): Promise<string> {
      lines.setPrompt(question); // shown again where the line is edited
      if (isShown) lines.prompt();
      else stderr.write(question);
      const { value, done } = await typed.next();
      if (done || !isShown) stderr.write("\n"); // Enter was not typed, or not shown
      return done ? ended : value;
    }
    try {
      return await Promise.race([ended, dialogue(ask)]);
    } finally {
      stdin.off("keypress", onKey);
      lines.close();
    }
  }
}
