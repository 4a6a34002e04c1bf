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

/** From this size a response goes out at once. A smaller one waits for the end of the turn. */
const LARGE_BYTES = 16 * 1024;

/** Sends a response; rejects when the connection breaks or the response's own stream does. */
export async function sendResponse(
  { status, headers: given, body }: HttpResponse,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { isLast, reserve, request, sendStream }: {
    /** Whether the connection ends with this response. */
    readonly isLast: () => boolean;
    /** Counts bytes that the client does not take at once, until the client has taken them. */
    readonly reserve: (bytes: number) => void;
    readonly request: HttpRequest;
    readonly sendStream: SendStream;
  },
): Promise<void> {
  const length = body instanceof ReadableStream ? 0 : Buffer.byteLength(body ?? "");
  // Large responses would pile up, and it is not known yet which of them the clients do not take.
  if (length < LARGE_BYTES || !incoming.complete) await endOfTurn();
  // Bytes that came with the head are parsed by now. The rest of a body is not worth reading.
  const isUnread = hasBody(incoming) && !incoming.complete;
  const headers: Record<string, string | string[] | number> = { ...given };
  if (isLast() || isUnread) headers["Connection"] = "close";
  if (body instanceof ReadableStream) {
    reserve(0); // a stream keeps no bytes here, but may wait for the client at any time
    const { "content-type": type } = headers;
    if (isEventStream(type)) {
      headers["x-accel-buffering"] ??= "no"; // else nginx would buffer its parts
      headers["Cache-Control"] ??= "no-store"; // else a cache would replay it to others
    }
    writeHead(outgoing, status, headers);
    if (incoming.method === "HEAD") {
      discardStream(request, body);
      outgoing.end();
    } else {
      // A client that still waits for 100 (Continue) sends no body.
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
  // Other responses go first, or the kernel has not taken all of this one.
  if (outgoing.socket === null || incoming.socket.writableLength > 0) reserve(length);
  if (!isUnread) return;
  if (outgoing.socket === null) outgoing.once("socket", () => drainAndClose(incoming));
  else drainAndClose(incoming);
}

/** Sends a head with Latin-1 on its own: with a text Node would encode the head as UTF-8 too. */
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
 * Resolves when all input of this turn of the event loop has been handled. The responses of a turn
 * go out together: a response that goes out alone wakes its client, which costs more than most
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
  closeGracefully(socket);
  socket.resume();
}

/** Ends the connection after what was written, and drops the rest of the request. */
function drainAndClose(incoming: IncomingMessage): void {
  const { socket } = incoming;
  // The response may still write in this turn.
  setImmediate(() => {
    closeGracefully(socket);
    incoming.once("end", () => socket.destroySoon());
    incoming.resume();
  });
}

/**
 * Half-closes the socket, and reads on until the client closes too, or for two seconds after all
 * has been sent. A client that gets RST while it sends may lose its response (RFC 9112 §9.6).
 */
function closeGracefully(socket: Socket): void {
  let timer: NodeJS.Timeout | undefined;
  socket.once("end", () => socket.destroySoon());
  socket.once("close", () => clearTimeout(timer));
  socket.end(() => {
    timer = setTimeout(() => socket.destroy(), 2000);
  });
}
