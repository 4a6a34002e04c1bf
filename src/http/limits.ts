/**
 * What clients, however hostile, can make the server hold: for each connection a head of 16 KiB, as
 * much of a body that nobody has asked for yet, and one read of 64 KiB; for all connections
 * together the requests that were sent ahead, the bodies, what is made of them and the responses,
 * which have bounds of their own. With the limits below that is 5,000 × 96 KiB + 352 MiB, about
 * 820 MiB, and test/fuzz/hostile_clients.test.ts tries it. What a hosted endpoint keeps by itself
 * comes on top.
 *
 * They are generous for people on slow lines, and so short that idle or dripping clients hold
 * little.
 */
export const DEFAULT_LIMITS = {
  maxConnections: 5_000,
  /** Of one address that is not a trusted proxy (IPv6: its /64). */
  maxConnectionsPerAddress: 2_500,
  /** Requests of one connection that wait for their responses; with one more it closes. */
  maxPipelined: 16,
  /** Bytes of all requests that wait behind another of their connection; likewise. */
  maxAheadBytes: 32 * 1024 * 1024,
  /** Bytes of all request bodies that are coming in or being worked on. */
  maxHeldBodyBytes: 64 * 1024 * 1024,
  /** Bytes of all values that are made of them, which may be many times as many. */
  maxParsedBytes: 192 * 1024 * 1024,
  /** Bytes of all responses that clients have not taken yet. */
  maxHeldResponseBytes: 64 * 1024 * 1024,
  /** From the first byte of a request to the end of its head, and to its end. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** How long a client may take nothing of a response that waits for it. */
  stallTimeoutMs: 30_000,
};

export type HttpLimits = Readonly<typeof DEFAULT_LIMITS>;

const SLOWEST_BYTES_PER_MS = 64;

/** Where larger bodies are taken, two of them fit into memory, and have time to arrive. */
export function limitsFor(maxBodyBytes: number): HttpLimits {
  const { maxHeldBodyBytes, maxParsedBytes, requestTimeoutMs } = DEFAULT_LIMITS;
  return {
    ...DEFAULT_LIMITS,
    maxHeldBodyBytes: Math.max(maxHeldBodyBytes, 2 * maxBodyBytes),
    maxParsedBytes: Math.max(maxParsedBytes, 16 * maxBodyBytes),
    requestTimeoutMs: Math.max(requestTimeoutMs, maxBodyBytes / SLOWEST_BYTES_PER_MS),
  };
}
