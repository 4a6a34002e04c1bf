const WIDTH = 92;
/** Members and parameters whose value must not be readable on a screen. */
const SECRETS = new Set(
  ("token access_token refresh_token client_secret secret code code_verifier csrf state " +
    "code_challenge").split(" "),
);

/** Formats JSON on one line if it fits, else one member per line; a form has one field per line. */
export function bodyLines(body: unknown): string[] {
  const value = typeof body === "string" ? parse(body) : body;
  if (value instanceof URLSearchParams) return parameterLines(value);
  if (typeof value === "string") return value.trimEnd().split("\n");
  return jsonLines(shortenDeep(value), WIDTH);
}

/** Formats decoded parameters of a form or a query, one per line. */
export function parameterLines(parameters: URLSearchParams): string[] {
  return [...parameters].map(([name, value]) => `${name}=${shortenMember(name, value)}`);
}

/** Formats headers, one per line; a long header continues, indented, after a comma. */
export function headerLines(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const line = `${name}: ${shortenHeader(name, value)}`;
    return line.length <= WIDTH ? [line] : line.split(/(?<=,) /).map(indentAfterFirst);
  });
}

/** Formats a command with shell quotes; if it is long, its options have lines of their own. */
export function commandLines(args: readonly string[]): string[] {
  const quoted = args.map((arg) => (/^[\w:/.-]+$/.test(arg) ? arg : `"${arg}"`));
  const line = quoted.join(" ");
  if (line.length <= WIDTH) return [line];
  const parts = line.split(/ (?=--)/);
  return parts.map((part, index) => {
    const goesOn = index < parts.length - 1 ? " \\" : "";
    return indentAfterFirst(part, index) + goesOn;
  });
}

/** Returns a value with every secret in it shortened. */
export function shortenDeep(value: unknown, name = ""): unknown {
  if (typeof value === "string") return shortenMember(name, value);
  if (Array.isArray(value)) return value.map((member) => shortenDeep(member));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, shortenDeep(member, key)]),
  );
}

function jsonLines(value: unknown, room: number): string[] {
  const line = JSON.stringify(value);
  if (line.length <= room || typeof value !== "object" || value === null) return [line];
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const members = entries.flatMap(([name, member], index) => {
    const [first = "", ...rest] = jsonLines(member, room - 2);
    const lines = [(isList ? "" : `${JSON.stringify(name)}: `) + first, ...rest];
    const comma = index < entries.length - 1 ? "," : "";
    return lines.map((each, at) => `  ${each}${at === lines.length - 1 ? comma : ""}`);
  });
  return [isList ? "[" : "{", ...members, isList ? "]" : "}"];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // no JSON: shown as it is
  }
}

/** Both ends are enough to tell two secrets apart, but not to use them. */
function shorten(text: string): string {
  return text.length < 24 ? "•".repeat(8) : `${text.slice(0, 4)}…${text.slice(-4)}`;
}

function shortenMember(name: string, value: string): string {
  if (name === "password") return "•".repeat(8);
  return SECRETS.has(name) ? shorten(value) : value;
}

function shortenHeader(name: string, value: string): string {
  if (name !== "authorization" && name !== "cookie") return value;
  const secret = name === "cookie" ? /(?<==)[^;]+/g : /(?<= ).+/;
  return value.replace(secret, shorten);
}

function indentAfterFirst(text: string, index: number): string {
  return index === 0 ? text : `  ${text}`;
}
