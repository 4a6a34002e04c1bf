import type { Socket } from "node:net";
import type { Cidr } from "../base/cidr.ts";
import type { HttpRequest } from "../base/http_message.ts";
import type { Problem } from "../base/problem.ts";
import { isTrustedProxy, peerAddress, throttleAddress } from "./client_address.ts";
import type { HttpLimits } from "./limits.ts";
import { cutOff, type IncomingBody } from "./node_body.ts";
import { createTurnLimit, type Sender } from "./turn_limit.ts";

export interface Connection extends Sender {
  /**
   * The requests whose responses are not complete. No response goes out while requests are parsed,
   * so all pipelined requests are in this list. An array: where members come and go, an old Map or
   * Set makes its new tables in V8's old generation, which is costly to free.
   */
  readonly unanswered: {
    readonly request: Pick<HttpRequest, "abort">;
    /** Releases all that the exchange holds. Called once. */
    release(): void;
  }[];
  /** The body of the last request, which may still be coming in. */
  receiving?: Pick<IncomingBody, "incoming" | "fail">;
  /** Whether nothing more is read from the connection. */
  isClosing: boolean;
  /** The problem that is sent before the connection ends. */
  problem?: Problem;
}

/** Node's own parser calls `onIncoming` for each request, and reads no more after an error. */
type ParsedSocket = Socket & { readonly parser?: object | null };
interface RequestHead {
  readonly socket: ParsedSocket;
  /** Names and values alternate. */
  readonly rawHeaders: readonly string[];
}
const PARSER_ERROR = -1;

/** Keeps the open connections. A connection beyond the limit of its address is closed at once. */
export function createConnections(limits: HttpLimits, trustedProxies: readonly Cidr[]) {
  const open = new Map<Socket, Connection>();
  const counts = new Map<string, number>();
  const turnLimit = createTurnLimit(() => open.values());
  let pipelinedBytes = 0;

  function count(address: string, step: 1 | -1): number {
    const number = (counts.get(address) ?? 0) + step;
    if (number > 0) counts.set(address, number);
    else counts.delete(address);
    return number;
  }

  return {
    find: (socket: Socket) => open.get(socket),
    /**
     * Returns the connection of a new request; undefined where the connection is closing. It starts
     * to close when too much is pipelined: the client sends the rest again (RFC 9112 §9.3.2).
     */
    accept({ socket, rawHeaders }: RequestHead): Connection | undefined {
      const connection = open.get(socket);
      turnLimit.count("request", connection); // a dropped request counts too
      turnLimit.count("field", connection, rawHeaders.length / 2);
      if (!connection) return undefined;
      const { length } = connection.unanswered;
      const isTooMany = length >= limits.maxPipelined ||
        (length > 0 && pipelinedBytes >= limits.maxPipelinedBytes);
      if (isTooMany) connection.isClosing = true;
      if (!connection.isClosing) return connection;
      // One read may hold 2,500 requests more, and Node has no other way to stop its parser.
      Object.assign(socket.parser ?? {}, { onIncoming: () => PARSER_ERROR });
      return undefined;
    },
    countPiece: (sender: Sender) => turnLimit.count("piece", sender),
    countBytes: (sender: Sender, bytes: number) => turnLimit.count("byte", sender, bytes),
    /** Adds to the bytes of pipelined requests; a number below 0 releases bytes. */
    countPipelined: (bytes: number) => void (pipelinedBytes += bytes),
    open(socket: Socket): void {
      const { remoteAddress = "" } = socket;
      if (!isTrustedProxy(peerAddress(remoteAddress), trustedProxies)) {
        const address = throttleAddress(remoteAddress);
        socket.once("close", () => count(address, -1));
        if (count(address, 1) > limits.maxConnectionsPerAddress) {
          socket.destroy();
          return;
        }
      }
      // Node stops listening when it hands out the socket, as for CONNECT. It closes anyway.
      socket.on("error", () => {});
      // Each stream that waits for its turn adds a listener, which Node would take for a leak.
      socket.setMaxListeners(socket.getMaxListeners() + limits.maxPipelined);
      const connection: Connection = {
        socket,
        cost: 0,
        isPaused: false,
        resumesLater: true,
        unanswered: [],
        isClosing: false,
      };
      open.set(socket, connection);
      turnLimit.pause(connection);
      // The client has left, or has closed its side and waits: the responses that come are sent.
      socket.once("end", () => {
        connection.isClosing = true;
        const { receiving } = connection;
        // Node's parser reports this itself, except for a request to upgrade.
        if (receiving && !receiving.incoming.complete) receiving.fail(cutOff());
        for (const { request } of connection.unanswered) request.abort();
      });
      socket.once("close", () => {
        open.delete(socket);
        // Node emits "close" on the first of several responses only.
        for (const { release } of [...connection.unanswered]) release();
      });
    },
    /**
     * Closes a connection on which no bytes have moved for long, unless the client is the one that
     * waits. A slow handler or a silent stream is not the client's error.
     */
    timeOut(socket: Socket): void {
      if (socket.writableLength > 0 || !open.get(socket)?.unanswered.length) socket.destroy();
    },
  };
}
