const WIDTH = 92;
/** Members and parameters that nobody should read off a screen. */
const SECRETS = new Set(
  ("token access_token refresh_token client_secret secret code code_verifier csrf state " +
    "code_challenge").split(" "),
);

/** JSON on one line where it fits, else a member a line; a form a field a line; text as it is. */
export function bodyLines(body: unknown): string[] {
  const value = typeof body === "string" ? parse(body) : body;
  if (value instanceof URLSearchParams) return parameterLines(value);
  if (typeof value === "string") return value.trimEnd().split("\n");
  return jsonLines(shortenDeep(value), WIDTH);
}

/** Parameters of a form or a query, one a line, as they are once decoded. */
export function parameterLines(parameters: URLSearchParams): string[] {
  return [...parameters].map(([name, value]) => `${name}=${shortenMember(name, value)}`);
}

/** Headers, one a line; a long one goes on, indented, after a comma. */
export function headerLines(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const line = `${name}: ${shortenHeader(name, value)}`;
    return line.length <= WIDTH ? [line] : line.split(/(?<=,) /).map(indentAfterFirst);
  });
}

/** A command, its arguments quoted where a shell needs it; a long one with its options on lines. */
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

/** A value with every secret in it cut short. */
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

/** Both ends tell two secrets apart, and open nothing. */
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
