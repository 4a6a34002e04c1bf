import type { ReadText } from "../base/env.ts";
import type { Members } from "../base/plain_object.ts";
import type { Config } from "../config.ts";
import type { Backend } from "./backend.ts";
import type { Terminal } from "./terminal.ts";

/** A positional argument, named in capitals as the help shows it. */
export interface Argument {
  readonly name: string;
  readonly meaning: string;
  readonly isOptional?: boolean;
  /** May be given several times; the last of a command alone. */
  readonly isRepeatable?: boolean;
}

/** A `--name`; one with `value` takes a text, shown under that name in the help. */
export interface Option {
  readonly value?: string;
  readonly meaning: string;
  /** Its value where it is not given, for the help. */
  readonly default?: string;
  /** May be given several times. */
  readonly isRepeatable?: boolean;
  readonly isRequired?: boolean;
  /** A flag that may also be taken back: `--no-name`. */
  readonly isNegatable?: boolean;
}

/** What the command line gave to a command, strictly parsed. */
export interface Values {
  /** A positional argument; "" where an optional one is missing. */
  argument(name: string): string;
  /** Whether a flag is set; undefined where neither it nor its `--no-` form was given. */
  flag(name: string): boolean | undefined;
  /** The value of an option, or undefined. */
  text(name: string): string | undefined;
  /** Every value of a repeatable argument, or of an option, undefined where it was not given. */
  list(name: string): readonly string[] | undefined;
}

/** What a command works with. */
export interface CommandContext {
  readonly config: Config;
  readonly values: Values;
  /** The process that the command runs in. */
  readonly host: Pick<NodeJS.Process,
    "argv" | "env" | "execArgv" | "execPath" | "execve" | "on" | "removeAllListeners">;
  readonly terminal: Terminal;
  /** Whether the response is printed as JSON. */
  readonly isJson: boolean;
  /**
   * The database and the backend's operations on it, opened once and closed at the end; made as the
   * server would, where there is none and `isMade`.
   */
  openBackend(isMade?: boolean): Promise<Backend>;
  /** Calls one of those operations. */
  readonly call: Backend["call"];
  /** Prints a response: as JSON where it has any, or what `show` makes of it for people. */
  print(response: Members | undefined, show: (record: Members) => string): void;
  /** Runs work that Ctrl+C may interrupt between its steps; a second one ends the process. */
  interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
}

/** One command: what the help says of it, and what it does. */
export interface Command {
  /** As typed: `["user", "add"]`. */
  readonly words: readonly string[];
  /** One line that begins with a verb. */
  readonly purpose: string;
  readonly arguments?: readonly Argument[];
  readonly options?: Readonly<Record<string, Option>>;
  /** Paragraphs of what is good to know. */
  readonly details?: readonly string[];
  /** The question to somebody at a terminal, unless with --yes; undefined where there is none. */
  readonly confirm?: (values: Values) => string | undefined;
  /** Whole command lines. */
  readonly examples: readonly string[];
  /** Reads a NAME_FILE, or leaves it to the program that takes over: undefined. */
  readonly readSecret?: ReadText;
  /** Throws UsageError, Failure or Problem. */
  run(context: CommandContext): Promise<void> | void;
}
