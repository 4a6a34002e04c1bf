import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** One response as it came over the wire. */
export interface RawResponse {
  readonly status: number;
  /** The status line without the version: "200 OK". */
  readonly line: string;
  /** Names in lower case; several values joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawExchange {
  /** Final responses in order; 1xx are left out. */
  readonly responses: readonly RawResponse[];
  /** All bytes that came, as latin1. */
  readonly text: string;
  /** Whether the server ended the connection, before the client did after `waitMs`. */
  readonly isClosed: boolean;
}

/** By then a server has noticed the end of its client, even on a busy machine. */
const FINISH_MS = 20_000;

export interface RawOptions {
  /** After this time without a byte the client ends the connection. */
  readonly waitMs?: number;
  /** Ends the client's side directly after the last byte. */
  readonly end?: boolean;
  /**
   * First ends only the client's side. The server then responds to an incomplete request and
   * closes; rejects if it does not close within 20 s.
   */
  readonly finish?: boolean;
}

/**
 * Sends bytes (strings are latin1, so that any byte can be written) and collects all that comes
 * back, until the server closes or is silent for `waitMs`. A broken connection counts as closed.
 */
export function exchangeRaw(
  port: number,
  bytes: string | Buffer,
  { waitMs = 300, end = false, finish = false }: RawOptions = {},
): Promise<RawExchange> {
  return new Promise((resolve, reject) => {
    let text = "";
    let isClosed = true;
    const socket = connect(port, "127.0.0.1");
    let isFinishing = false;
    const onSilence = (): void => {
      if (finish && !isFinishing) {
        isFinishing = true;
        socket.end();
        wait();
        return;
      }
      if (finish) reject(new Error("the server does not close a connection that its client ended"));
      isClosed = false;
      socket.destroy();
    };
    let timer: NodeJS.Timeout | undefined;
    const wait = (): void => {
      clearTimeout(timer);
      timer = setTimeout(onSilence, isFinishing ? FINISH_MS : waitMs);
    };
    wait();
    socket.setNoDelay(true);
    socket.on("connect", () => {
      const sent = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
      if (end) socket.end(sent);
      else socket.write(sent);
    });
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      wait();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      try {
        resolve({ responses: parseResponses(text), text, isClosed });
      } catch (error) {
        reject(error);
      }
    });
  });
}

/**
 * Sends a request without its last byte; the returned function sends that byte and resolves with
 * the response. The request must ask for the connection to be closed.
 */
async function sendPartly(port: number, text: string): Promise<() => Promise<RawResponse>> {
  const socket = await openRaw(port);
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  const closed = once(socket, "close");
  socket.write(text.slice(0, -1));
  return async () => {
    socket.write(text.slice(-1));
    await closed;
    const [response] = parseResponses(received);
    if (response === undefined) throw new Error("no response");
    return response;
  };
}

/**
 * Opens a connection that stays open; the caller destroys it. If it breaks, the test does not fail.
 */
export function openRaw(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.on("error", () => socket.destroy());
      resolve(socket);
    });
  });
}

/** Parses a stream of responses; throws if it is not valid HTTP/1.1. */
export function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = text;
  while (rest !== "") {
    const headEnd = rest.indexOf("\r\n\r\n");
    const [first = "", ...fields] = rest.slice(0, headEnd).split("\r\n");
    const [, code] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*$/.exec(first) ?? [];
    if (headEnd < 0 || code === undefined) {
      throw new Error(`no response begins with ${JSON.stringify(rest.slice(0, 200))}`);
    }
    const headers: Record<string, string> = {};
    for (const field of fields) {
      const colon = field.indexOf(":");
      const name = field.slice(0, colon).toLowerCase();
      const value = field.slice(colon + 1).trim();
      headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
    }
    rest = rest.slice(headEnd + 4);
    const status = Number(code);
    if (status < 200) continue;
    const [body, left] = takeBody(rest, status, headers);
    rest = left;
    responses.push({ status, line: first.slice("HTTP/1.1 ".length), headers, body });
  }
  return responses;
}

function takeBody(
  text: string,
  status: number,
  headers: Readonly<Record<string, string>>,
): [body: string, rest: string] {
  if (status === 204 || status === 304) return ["", text];
  // A response to HEAD announces a body that does not come: the next response follows, or nothing.
  if (text.startsWith("HTTP/1.1 ")) return ["", text];
  if (headers["transfer-encoding"] === "chunked") return takeChunks(text);
  const length = headers["content-length"];
  if (length === undefined) return [text, ""];
  return [text.slice(0, Number(length)), text.slice(Number(length))];
}

function takeChunks(text: string): [body: string, rest: string] {
  let body = "";
  let rest = text;
  while (rest !== "") {
    const [line = "", hex = "0"] = /^([0-9a-f]+)\r\n/i.exec(rest) ?? [];
    const size = parseInt(hex, 16);
    body += rest.slice(line.length, line.length + size);
    rest = rest.slice(line.length + size + 2);
    if (size === 0) break;
  }
  return [body, rest];
}

/**
 * Sends one request whose target is exactly as given, while clients would normalize it: dot
 * segments, backslashes, anything. `head` has more header lines, each ended by CR LF.
 */
export async function sendRaw(
  url: string,
  method: string,
  target: string,
  { head = "", body = "" }: { readonly head?: string; readonly body?: string } = {},
): Promise<RawResponse> {
  const { host, port } = new URL(url);
  const start = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
  const { responses: [response], text } = await exchangeRaw(
    Number(port),
    Buffer.from(`${start}${head}\r\n${body}`),
    { waitMs: 5000 },
  );
  if (response === undefined) throw new Error(`no response: ${text}`);
  return response;
}

/**
 * Sends a request without the last byte of its body, and waits until the server has begun to read
 * it. The returned function sends the last byte and resolves with the response.
 */
export async function sendSlowly(
  url: string,
  method: string,
  target: string,
  { head = {}, body }: { readonly head?: Readonly<Record<string, string>>; readonly body: string },
): Promise<() => Promise<RawResponse>> {
  const { host, port, pathname } = new URL(url);
  const fields = {
    Host: host,
    Connection: "close",
    "Content-Length": String(Buffer.byteLength(body)),
    ...head,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const path = pathname.replace(/\/$/, "") + target;
  const start = `${method} ${path} HTTP/1.1\r\n${lines}\r\n`;
  const finish = await sendPartly(Number(port), start + body);
  await sleep(200);
  return finish;
}
