/**
 * The limits of what clients, however hostile, can make the server hold. Each connection may hold a
 * head of 16 KiB, as much of a body that nobody has asked for yet, and one read of 64 KiB. All
 * connections together may hold pipelined requests, bodies, parsed values and responses, each up to
 * its limit below. That is 5,000 × 96 KiB + 352 MiB, about 820 MiB, which
 * test/fuzz/hostile_clients.test.ts tries. What a hosted endpoint keeps by itself comes on top.
 *
 * The timeouts are generous for people on slow lines, and so short that idle or dripping clients
 * hold little.
 */
export const DEFAULT_LIMITS = {
  maxConnections: 5_000,
  /** Connections of one address (IPv6: of its /64) that is not a trusted proxy. */
  maxConnectionsPerAddress: 2_500,
  /** Requests of one connection that wait for their responses. One more closes the connection. */
  maxPipelined: 16,
  /** Bytes of all requests that wait behind another. One more request closes its connection. */
  maxPipelinedBytes: 32 * 1024 * 1024,
  /** Bytes of all request bodies that are coming in or being worked on. */
  maxHeldBodyBytes: 64 * 1024 * 1024,
  /** Bytes of all values parsed from bodies, which may be many times as many. */
  maxParsedBytes: 192 * 1024 * 1024,
  /** Bytes of all responses that clients have not taken yet. */
  maxHeldResponseBytes: 64 * 1024 * 1024,
  /** From the first byte of a request to the end of its head, and to the end of the request. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /**
   * How long a client may read nothing of a response that waits for the client. Node allows twice
   * as long after the client has read a part of the last write.
   */
  stallTimeoutMs: 30_000,
  /**
   * How long a connection may wait for another request. Longer than proxies keep theirs (most a
   * minute, Caddy two): what they send into one that is closing is lost.
   */
  idleTimeoutMs: 125_000,
};

export type HttpLimits = Readonly<typeof DEFAULT_LIMITS>;

const SLOWEST_BYTES_PER_MS = 64;

/** Returns limits with which two of the largest bodies fit into memory and can arrive in time. */
export function limitsFor(maxBodyBytes: number): HttpLimits {
  const { maxHeldBodyBytes, maxParsedBytes, requestTimeoutMs } = DEFAULT_LIMITS;
  return {
    ...DEFAULT_LIMITS,
    maxHeldBodyBytes: Math.max(maxHeldBodyBytes, 2 * maxBodyBytes),
    maxParsedBytes: Math.max(maxParsedBytes, 16 * maxBodyBytes),
    requestTimeoutMs: Math.max(requestTimeoutMs, maxBodyBytes / SLOWEST_BYTES_PER_MS),
  };
}
