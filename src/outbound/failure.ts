import { setTimeout as sleep } from "node:timers/promises";

/** Codes by kind: exact, or with `*` a prefix; Node's, undici's, OpenSSL's and the guard's own. */
const KINDS = [
  ["unreachable", [ // no such name, no route, or not a reachable address
    "EGRESS_*", "NAME_LOOKUP_*", "ENOTFOUND", "EAI_*", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN",
    "EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL", "EACCES", "EPERM",
  ]],
  ["timeout", [ // no connection, headers or body in time
    "TimeoutError", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_BODY_TIMEOUT", "ERR_TLS_HANDSHAKE_TIMEOUT",
  ]],
  ["refused", ["ECONNREFUSED"]], // the host is there, nobody listens
  ["reset", ["ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"]], // the connection broke
  ["tls", [ // handshake or certificate
    "ERR_TLS_*", "ERR_SSL_*", "EPROTO", "CERT_*", "CRL_*", "ERROR_IN_C*", "UNABLE_TO_*",
    "DEPTH_ZERO_*", "SELF_SIGNED_*", "INVALID_CA", "INVALID_PURPOSE", "PATH_LENGTH_EXCEEDED",
    "HOSTNAME_MISMATCH",
  ]],
  ["protocol", [ // the response is not valid HTTP
    "HTTPParserError", "HPE_*", "UND_ERR_HTTP_PARSER", "UND_ERR_HEADERS_OVERFLOW", "UND_ERR_RES*",
    "Z_*", "ZSTD_*", "ERR__ERROR_*", // the last are Brotli's
    "INTERIM_LIMIT", // exchange.ts
    "ERR_ASSERTION", // undici's, of a response that it does not expect
  ]],
  // ended by this side
  ["aborted", ["AbortError", "UND_ERR_ABORT*", "UND_ERR_DESTROYED", "UND_ERR_CLOSED"]],
] as const;

/**
 * Why an exchange failed, as subscribers see it. "unreachable" means an address that the guard
 * refuses as well as a name without addresses, so that nobody can map the network behind the guard.
 */
export type FailureKind = (typeof KINDS)[number][0] | "other";

/** The names of errors without a code of their own. */
const NAMED = ["TimeoutError", "AbortError", "HTTPParserError"];
/** The message by which fetch refuses another protocol's port (Fetch standard, "port blocking"). */
const BAD_PORT = "bad port";

/** How deep causes are followed: fetch wraps once, a socket's attempts once more. */
const MAX_DEPTH = 5;

/** Returns the kind of failure of an error of `fetch`, or of reading its response. */
export function classifyFailure(error: unknown): FailureKind {
  return classifyCode(findCode(error));
}

/** Returns the kind of failure of a code that {@link findCode} found. */
export function classifyCode(code: string | undefined): FailureKind {
  if (code === undefined) return "other";
  const isIt = (each: string) =>
    each.endsWith("*") ? code.startsWith(each.slice(0, -1)) : code === each;
  return KINDS.find(([, codes]) => codes.some(isIt))?.[0] ?? "other";
}

/**
 * Returns the kind of failure of an exchange that began at `startedMs` (performance.now()). For an
 * unreachable target it waits until the exchange has taken whole seconds. An exact duration would
 * distinguish a name with a private address from one that does not exist.
 */
export async function settleFailure(error: unknown, startedMs: number): Promise<FailureKind> {
  const kind = classifyFailure(error);
  if (kind === "unreachable") await sleep(1_000 - (performance.now() - startedMs) % 1_000);
  return kind;
}

/**
 * Returns the most specific code of an error: its own `code`, else that of its cause or of the
 * first of its errors that has one. For an abort, a timeout signal and undici's parser it is the
 * name. Undefined if there is none.
 */
export function findCode(error: unknown): string | undefined {
  return findIn(error, (each) => {
    if ("code" in each && typeof each.code === "string") return each.code;
    if (each.message === BAD_PORT) return "EGRESS_PORT";
    return NAMED.includes(each.name) ? each.name : undefined;
  });
}

/** Returns what `pick` finds first in an error, its cause, and the errors of an AggregateError. */
export function findIn<Found>(
  error: unknown,
  pick: (error: Error) => Found | undefined,
  depth = 0,
): Found | undefined {
  if (!(error instanceof Error) || depth > MAX_DEPTH) return undefined;
  const own = pick(error);
  if (own !== undefined) return own;
  const inner = error instanceof AggregateError ? [error.cause, ...error.errors] : [error.cause];
  for (const each of inner) {
    const found = findIn(each, pick, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
