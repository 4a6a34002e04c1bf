import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  discardStream,
  hasBody,
  type HttpRequest,
  type HttpResponse,
} from "../base/http_message.ts";
import { statusText } from "../base/status_text.ts";
import { isEventStream, type SendStream } from "./node_stream.ts";

/** Of a response that goes out at once; smaller ones wait for those of the same turn. */
const LARGE_BYTES = 16 * 1024;

/** Sends a response; rejects when the connection breaks or the response's own stream does. */
export async function sendResponse(
  { status, headers: given, body }: HttpResponse,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { isLast, hold, request, sendStream }: {
    /** Whether the connection ends with this response. */
    readonly isLast: () => boolean;
    /** Counts the bytes that the client does not take at once, until it has, for so long only. */
    readonly hold: (bytes: number) => void;
    readonly request: HttpRequest;
    readonly sendStream: SendStream;
  },
): Promise<void> {
  const length = body instanceof ReadableStream ? 0 : Buffer.byteLength(body ?? "");
  // Large ones would pile up, and nobody knows yet which of them the clients do not take.
  if (length < LARGE_BYTES || !incoming.complete) await endOfTurn();
  // What came together with the head is parsed by now; the rest of a body is not worth reading.
  const isUnread = hasBody(incoming) && !incoming.complete;
  const headers: Record<string, string | string[] | number> = { ...given };
  if (isLast() || isUnread) headers["Connection"] = "close";
  if (body instanceof ReadableStream) {
    hold(0); // of what it sends nothing is kept, but it may wait for the client at any time
    const { "content-type": type } = headers;
    if (isEventStream(type)) {
      headers["x-accel-buffering"] ??= "no"; // else nginx would collect parts before it sends any
      headers["Cache-Control"] ??= "no-store"; // else a cache would play it to others again
    }
    writeHead(outgoing, status, headers);
    if (incoming.method === "HEAD") {
      discardStream(request, body);
      outgoing.end();
    } else {
      // Who still waits for 100 (Continue) sends none.
      const unread = isUnread && !incoming.headers.expect ? incoming : undefined;
      await sendStream(body, type, request, outgoing, unread);
    }
    return;
  }
  if (status !== 204 && status !== 304) headers["Content-Length"] = length;
  writeHead(outgoing, status, headers);
  if (!isUnread) outgoing.end(body);
  else if (body === undefined || incoming.method === "HEAD") outgoing.flushHeaders();
  else outgoing.write(body);
  // Others go before it, or the kernel would not take all of it.
  if (outgoing.socket === null || incoming.socket.writableLength > 0) hold(length);
  if (!isUnread) return;
  if (outgoing.socket === null) outgoing.once("socket", () => linger(incoming));
  else linger(incoming);
}

/** Node sends a head in the encoding of a text that goes with it, UTF-8; in Latin-1 alone. */
function writeHead(
  outgoing: ServerResponse,
  status: number,
  headers: Record<string, string | string[] | number>,
): void {
  outgoing.writeHead(status, headers);
  if (/[\x80-\xff]/.test(Object.values(headers).join())) outgoing.write(Buffer.alloc(0));
}

let turnEnd: Promise<void> | undefined;

/**
 * Resolves when all that has come in by this turn of the loop has been looked at. The responses of
 * a turn go out together: each that goes out alone wakes its client up, which costs more than most
 * requests do.
 */
function endOfTurn(): Promise<void> {
  return turnEnd ??= new Promise((resolve) =>
    setImmediate(() => {
      turnEnd = undefined;
      resolve();
    })
  );
}

/** Responds on a bare socket, where node:http has no request to respond to. */
export function refuseSocket(socket: Socket, { status, headers, body }: HttpResponse): void {
  const text = String(body);
  const fields = {
    ...headers,
    Date: new Date().toUTCString(),
    "Content-Length": Buffer.byteLength(text),
    Connection: "close",
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${statusText(status)}\r\n${lines.join("")}\r\n${text}`);
  endGently(socket);
  socket.resume();
}

/** Ends the connection after what was written, and drops the rest of the request. */
function linger(incoming: IncomingMessage): void {
  const { socket } = incoming;
  // After what the response still has to write in this turn.
  setImmediate(() => {
    endGently(socket);
    incoming.once("end", () => socket.destroySoon());
    incoming.resume();
  });
}

/**
 * Says that nothing more comes, and listens on until the client says so too, or for two seconds
 * after it has all: one that gets RST while it sends may lose its response (RFC 9112 §9.6).
 */
function endGently(socket: Socket): void {
  let timer: NodeJS.Timeout | undefined;
  socket.once("end", () => socket.destroySoon());
  socket.once("close", () => clearTimeout(timer));
  socket.end(() => {
    timer = setTimeout(() => socket.destroy(), 2000);
  });
}
