import type { ReadText } from "../base/env.ts";
import type { Members } from "../base/plain_object.ts";
import type { Config } from "../config.ts";
import type { Backend } from "./backend.ts";
import type { Terminal } from "./terminal.ts";

/** A positional argument; its name is in capitals, as the help shows it. */
export interface Argument {
  readonly name: string;
  readonly meaning: string;
  readonly isOptional?: boolean;
  /** May be given several times; only for the last argument of a command. */
  readonly isRepeatable?: boolean;
}

/** An option `--name`; with `value` it takes a text, which the help shows by that name. */
export interface Option {
  readonly value?: string;
  readonly meaning: string;
  /** The default value, for the help. */
  readonly default?: string;
  /** May be given several times. */
  readonly isRepeatable?: boolean;
  readonly isRequired?: boolean;
  /** A flag with a form that clears it: `--no-name`. */
  readonly isNegatable?: boolean;
}

/** The parsed arguments and options of a command. */
export interface Values {
  /** A positional argument; "" if an optional one is missing. */
  argument(name: string): string;
  /** Whether a flag is set; undefined if neither it nor its `--no-` form was given. */
  flag(name: string): boolean | undefined;
  /** The value of an option, or undefined. */
  text(name: string): string | undefined;
  /** All values of a repeatable argument or option; undefined if an option was not given. */
  list(name: string): readonly string[] | undefined;
}

/** What a command can use. */
export interface CommandContext {
  readonly config: Config;
  readonly values: Values;
  /** The process that the command runs in. */
  readonly host: Pick<NodeJS.Process,
    "argv" | "env" | "execArgv" | "execPath" | "execve" | "on" | "removeAllListeners">;
  readonly terminal: Terminal;
  /** Whether responses are printed as JSON. */
  readonly isJson: boolean;
  /**
   * Opens the database and the backend's operations on it, once; they are closed at the end. If
   * there is no database and `create` is set, it is made as the server would.
   */
  openBackend(create?: boolean): Promise<Backend>;
  /** Calls an operation of the backend. */
  readonly call: Backend["call"];
  /** Prints a response as JSON if it has any, or as `show` formats it for people. */
  print(response: Members | undefined, show: (record: Members) => string): void;
  /** Runs work that Ctrl+C interrupts between its steps; a second Ctrl+C ends the process. */
  interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
}

/** A command: its help and its work. */
export interface Command {
  /** The words that name the command, such as `["user", "add"]`. */
  readonly words: readonly string[];
  /** One line that begins with a verb. */
  readonly purpose: string;
  readonly arguments?: readonly Argument[];
  readonly options?: Readonly<Record<string, Option>>;
  /** Further paragraphs of the help. */
  readonly details?: readonly string[];
  /** Returns the question that is asked at a terminal without --yes, or undefined. */
  readonly confirm?: (values: Values) => string | undefined;
  /** Complete command lines, for the help. */
  readonly examples: readonly string[];
  /** Reads the file of a NAME_FILE; undefined leaves that to the program that takes over. */
  readonly readSecret?: ReadText;
  /** Throws UsageError, Failure or Problem. */
  run(context: CommandContext): Promise<void> | void;
}
