import { createInterface } from "node:readline";
import { styleText } from "node:util";
import { Failure } from "./failure.ts";

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
  /** Asks questions one after the other without showing the answers; throws Failure on Ctrl+C. */
  askHidden<Result>(dialogue: (ask: Ask) => Promise<Result>): Promise<Result>;
}

/** Asks one question and returns the line typed. */
export type Ask = (question: string) => Promise<string>;

const MAX_STDIN_BYTES = 1_048_576;
const CLEAR_LINE = "\r\u001b[K";

/** Opens the terminal of a process. */
export function openTerminal(host: NodeJS.Process): Terminal {
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
    async askHidden(dialogue) {
      // Without an output nothing that is typed is shown, and Ctrl+C becomes an event.
      const lines = createInterface({ input: stdin, terminal: true, historySize: 0 });
      const waiting: ((line: string) => void)[] = [];
      const typed: string[] = []; // a paste may hold several lines
      lines.on("line", (line) => {
        const answer = waiting.shift();
        if (answer) answer(line);
        else typed.push(line);
      });
      const ended = new Promise<never>((_, reject) => {
        const end = () => reject(new Failure("Interrupted; nothing was changed."));
        lines.once("SIGINT", end).once("close", end);
      });
      const ask: Ask = async (question) => {
        stderr.write(question);
        try {
          return typed.shift() ?? await Promise.race([
            ended,
            new Promise<string>((resolve) => waiting.push(resolve)),
          ]);
        } finally {
          stderr.write("\n"); // the one that was typed is not shown either
        }
      };
      try {
        return await Promise.race([ended, dialogue(ask)]);
      } finally {
        lines.close();
      }
    },
  };
}
