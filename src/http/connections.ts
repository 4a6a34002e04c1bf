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
   * so those that were sent ahead are all in it. An array: where members come and go, a Map or a
   * Set that has grown old makes all its new tables as old memory, which is costly to free.
   */
  readonly unanswered: {
    readonly request: Pick<HttpRequest, "abort">;
    /** Releases all that it holds; this is called once. */
    release(): void;
  }[];
  /** The last request: whose body may still be coming in. */
  receiving?: Pick<IncomingBody, "incoming" | "fail">;
  /** Nothing more is read from it. */
  isClosing: boolean;
  /** What is sent before it ends. */
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

/** Keeps the open connections; one too many of an address is closed as it comes. */
export function createConnections(limits: HttpLimits, trustedProxies: readonly Cidr[]) {
  const open = new Map<Socket, Connection>();
  const counts = new Map<string, number>();
  const turnLimit = createTurnLimit(() => open.values());
  let aheadBytes = 0;

  function count(address: string, step: 1 | -1): number {
    const number = (counts.get(address) ?? 0) + step;
    if (number > 0) counts.set(address, number);
    else counts.delete(address);
    return number;
  }

  return {
    find: (socket: Socket) => open.get(socket),
    /**
     * The connection of one more request; undefined where it closes, as it does once this is more
     * than may be sent ahead: its client sends the rest again (RFC 9112 §9.3.2).
     */
    take({ socket, rawHeaders }: RequestHead): Connection | undefined {
      const connection = open.get(socket);
      turnLimit.count("request", connection); // also one that is dropped
      turnLimit.count("field", connection, rawHeaders.length / 2);
      if (!connection) return undefined;
      const { length } = connection.unanswered;
      const isTooMany = length >= limits.maxPipelined ||
        (length > 0 && aheadBytes >= limits.maxAheadBytes);
      if (isTooMany) connection.isClosing = true;
      if (!connection.isClosing) return connection;
      // One read may hold 2,500 requests more, and Node has no other way to stop its parser.
      Object.assign(socket.parser ?? {}, { onIncoming: () => PARSER_ERROR });
      return undefined;
    },
    countPiece: (sender: Sender) => turnLimit.count("piece", sender),
    countBytes: (sender: Sender, bytes: number) => turnLimit.count("byte", sender, bytes),
    /** Counts what is held of requests that were sent ahead, or with less than 0 no more. */
    countAhead: (bytes: number) => void (aheadBytes += bytes),
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
      // Node listens no more once it has handed out the socket, as for CONNECT; it closes anyway.
      socket.on("error", () => {});
      // All streams that wait for their turns listen to it, which Node would take for a leak.
      socket.setMaxListeners(socket.getMaxListeners() + limits.maxPipelined);
      const connection: Connection = {
        socket,
        cost: 0,
        isHeld: false,
        isWanted: true,
        unanswered: [],
        isClosing: false,
      };
      open.set(socket, connection);
      turnLimit.hold(connection);
      // Its client has left, or still waits for responses: those that there will be are sent.
      socket.once("end", () => {
        connection.isClosing = true;
        const { receiving } = connection;
        // Node's parser says so itself, but not of a request to upgrade.
        if (receiving && !receiving.incoming.complete) receiving.fail(cutOff());
        for (const { request } of connection.unanswered) request.abort();
      });
      socket.once("close", () => {
        open.delete(socket);
        // Node emits "close" on the first of several responses alone.
        for (const { release } of [...connection.unanswered]) release();
      });
    },
    /**
     * Closes one on which nothing has come or gone for long, unless it is its client that waits: a
     * slow handler or a silent stream is not the client's error.
     */
    timeOut(socket: Socket): void {
      if (socket.writableLength > 0 || !open.get(socket)?.unanswered.length) socket.destroy();
    },
  };
}
