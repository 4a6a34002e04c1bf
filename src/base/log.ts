import { messageOf } from "./message_of.ts";
import { isRecord } from "./shape.ts";

/** Log levels, least urgent first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Values beside a message. An Error is written out, with its stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The service's log. Never log a secret. It never throws, whatever the fields hold. */
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

/** A log with a buffer, which must be flushed before the process ends. */
export type BufferedLog = ReturnType<typeof createLogger>;

type Line = Readonly<Record<"time" | "level" | "msg", string>>;

const FLUSH_AT_CHARS = 16_384; // a pipe takes 64 KiB without waiting for its reader
const FLUSH_AFTER_MS = 10;
const MAX_CAUSES = 4;
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Returns a logger that writes one line a message: `{"time": RFC 3339, "level", "msg", ...fields}`.
 * Lines are collected for a few milliseconds and written together, since a write for every request
 * would cost as much as the request does. Call `flush` before the process ends.
 */
export function createLogger({ level, write, now, pretty = false }: {
  /** The least urgent level that is written. */
  readonly level: LogLevel;
  /** Takes whole lines, each with its line feed. */
  write(lines: string): void;
  /** The time in milliseconds since the epoch. */
  now(): number;
  /** A readable line for a terminal in place of JSON. */
  readonly pretty?: boolean;
}) {
  const formatLine = pretty ? formatPretty : formatJson;
  const least = LOG_LEVELS.indexOf(level);
  let lines = "";
  let last = { ms: NaN, time: "" }; // formatted once for all lines of a millisecond
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    const collected = lines;
    lines = "";
    if (collected !== "") write(collected);
  }

  /** A value that JSON cannot hold (cycle, bigint, throwing getter) must not fail the caller. */
  function formatSafely(line: Line, fields: LogFields, msg: unknown): string {
    try {
      return formatLine(line, toFields(fields, msg));
    } catch {
      return formatLine(line, expressible(fields));
    }
  }

  function at(level: LogLevel, isWritten = LOG_LEVELS.indexOf(level) >= least): Log["info"] {
    if (!isWritten) return () => {};
    return (msg, fields = {}) => {
      const ms = now();
      if (ms !== last.ms) last = { ms, time: new Date(ms).toISOString() };
      const line: Line = { time: last.time, level, msg: toText(msg) };
      lines += `${formatSafely(line, fields, msg)}\n`;
      if (lines.length >= FLUSH_AT_CHARS) flush();
      timer ??= setTimeout(() => {
        timer = undefined;
        flush();
      }, FLUSH_AFTER_MS);
    };
  }

  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    /** Writes information at every level: lines that other programs wait for. */
    always: at("info", true),
    flush,
  };
}

/** Returns the message as text: a JavaScript module may pass any value. */
function toText(msg: unknown): string {
  if (typeof msg === "string") return msg;
  try {
    return messageOf(msg);
  } catch { // an object that cannot become text
    return LEFT_OUT;
  }
}

/** Returns a line's fields. A value in their place, or an Error as message, becomes a field. */
export function toFields(given: unknown, msg?: unknown): LogFields {
  const fields = given instanceof Error ? { error: given }
    : isRecord(given) ? given : { value: given };
  return msg instanceof Error ? { error: msg, ...fields } : fields;
}

const LEFT_OUT = "left out: not expressible as JSON";

/** Returns the fields as plain data. A note replaces each value that JSON cannot hold. */
export function expressible(fields: LogFields): LogFields {
  try {
    return Object.fromEntries(Object.keys(fields).map((name) => [name, copyOf(fields, name)]));
  } catch {
    return { fields: LEFT_OUT };
  }
}

function copyOf(fields: LogFields, name: string): unknown {
  try {
    const value = fields[name];
    const text = JSON.stringify(value instanceof Error ? describeError(value, 0) : value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return LEFT_OUT;
  }
}

function formatJson({ time, level, msg }: Line, fields: LogFields): string {
  let members = encodeMembers(fields);
  // An Error shows as an object. A search for one in every line would cost a tenth of the line.
  if (members.includes("{")) members = encodeMembers(describeFields(fields));
  const comma = members === "}" ? "" : ",";
  const head = `{"time":"${time}","level":"${level}","msg":${JSON.stringify(msg)}`;
  const line = head + comma + members;
  // In ASCII without DEL, as nearly every line is, JSON has escaped every control already.
  const isPlain = Buffer.byteLength(line) === line.length && !line.includes("\x7f");
  return isPlain ? line : escapeControls(line);
}

/** No field may replace these members: JSON leaves out what is undefined. */
const RESERVED = { time: undefined, level: undefined, msg: undefined, toJSON: undefined };

function encodeMembers(fields: LogFields): string {
  const { time, level, msg, toJSON } = fields;
  const isFree = time === undefined && level === undefined && msg === undefined && !toJSON;
  // The copy would cost nearly every line a third more.
  const text = isFree ? JSON.stringify(fields) : "";
  return (text.startsWith("{") ? text : JSON.stringify({ ...fields, ...RESERVED })).slice(1);
}

function formatPretty(line: Line, fields: LogFields): string {
  let text = `${line.time} ${line.level.toUpperCase().padEnd(5)} ${escapeControls(line.msg)}`;
  let stacks = "";
  for (const [name, value] of Object.entries(describeFields(fields))) {
    if (value === undefined) continue;
    if (isRecord(value) && typeof value["stack"] === "string") {
      stacks += indentRows((name === "error" ? "" : `${name}: `) + stackOf(value));
      continue;
    }
    const isPlain = typeof value === "string" && /^[\w./:@+-]+$/.test(value);
    const shown = isPlain ? value : escapeControls(String(JSON.stringify(value)));
    text += ` ${escapeControls(name)}=${shown}`;
  }
  return text + stacks;
}

/** Indents every line of a stack, so that none looks like a log line of its own. */
function indentRows(text: string): string {
  return text.split("\n").map((row) => `\n    ${escapeControls(row)}`).join("");
}

function stackOf({ stack, message, cause, errors }: Readonly<Record<string, unknown>>): string {
  const causes = [cause, errors].flat().filter(isRecord);
  return [stack ?? message, ...causes.map((each) => `caused by ${stackOf(each)}`)].join("\n");
}

/** The fields with every Error as plain data, which can be sent to another thread. */
export function describeFields(fields: LogFields): LogFields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) =>
    [name, value instanceof Error ? describeError(value, 0) : value]
  ));
}

function describeError(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = "code" in error ? error.code : undefined;
  const describeAll = (errors: readonly unknown[]) =>
    depth === MAX_CAUSES ? [] : errors.slice(0, MAX_CAUSES)
      .flatMap((each) => each instanceof Error ? [describeError(each, depth + 1)] : []);
  const [shown] = describeAll([cause]);
  const errors = describeAll(error instanceof AggregateError ? error.errors : []);
  return {
    name,
    message,
    ...(typeof code === "string" && { code }),
    stack,
    ...(shown && { cause: shown }),
    ...(errors.length > 0 && { errors }),
  };
}

/**
 * Escapes what moves a terminal's cursor, breaks a line or reverses its direction: C0, DEL, C1, the
 * separators U+2028/9 and the bidirectional controls. JSON's own escapes are left as they are.
 */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, escapeUnit);
}

/** A UTF-16 code unit as JSON escapes it: `\u000a`. */
export function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
