import assert from "node:assert/strict";
import { test } from "node:test";
import { EgressError } from "../../src/outbound/reachable.ts";
import { classifyFailure, findCode } from "../../src/outbound/failure.ts";
import type { FailureKind } from "../../src/outbound/failure.ts";

function coded(code: string): Error {
  return Object.assign(new Error("raw"), { code });
}

/** As fetch rejects: a TypeError that says little, with the socket's error as its cause. */
function fetchFailed(cause: unknown): Error {
  return new TypeError("fetch failed", { cause });
}

const KINDS: readonly (readonly [FailureKind, readonly string[]])[] = [
  ["timeout", ["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_BODY_TIMEOUT", "ERR_TLS_HANDSHAKE_TIMEOUT"]],
  ["unreachable", ["ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL",
    "EGRESS_REFUSED", "NAME_LOOKUP_FAILED", "NAME_LOOKUP_UNANSWERED"]],
  ["refused", ["ECONNREFUSED"]],
  ["reset", ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]],
  ["tls", ["CERT_HAS_EXPIRED", "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_TLS_CERT_ALTNAME_INVALID", "EPROTO",
    "ERR_SSL_WRONG_VERSION_NUMBER", "HOSTNAME_MISMATCH"]],
  ["protocol", ["HPE_INVALID_CONSTANT", "UND_ERR_HEADERS_OVERFLOW",
    "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"]],
  ["aborted", ["UND_ERR_ABORTED", "UND_ERR_DESTROYED", "UND_ERR_CLOSED"]],
  ["other", ["ESOMETHING", "UND_ERR_INVALID_ARG"]],
];
for (const [kind, codes] of KINDS) {
  for (const code of codes) {
    test(`classifyFailure() reads ${code} as ${kind}`, () => {
      assert.equal(classifyFailure(fetchFailed(coded(code))), kind);
    });
  }
}

test("classifyFailure() gives a refused address and a failed name the same kind", () => {
  const refused = fetchFailed(new EgressError("EGRESS_REFUSED", "not reachable"));
  const unknown = fetchFailed(new EgressError("NAME_LOOKUP_FAILED", "missing.example"));
  assert.equal(classifyFailure(refused), classifyFailure(unknown));
});

test("classifyFailure() distinguishes a timeout signal from an abort", async () => {
  const timeout = AbortSignal.timeout(0);
  await new Promise((resolve) => timeout.addEventListener("abort", resolve));
  assert.equal(classifyFailure(timeout.reason), "timeout");
  assert.equal(classifyFailure(AbortSignal.abort().reason), "aborted");
});

test("classifyFailure() looks into the errors of several attempts", () => {
  const attempts = new AggregateError([new Error("no code"), coded("ECONNREFUSED")]);
  assert.equal(classifyFailure(fetchFailed(attempts)), "refused");
});

test("classifyFailure() returns other for what is no error, or has no code", () => {
  for (const error of [undefined, null, "ECONNRESET", { code: "ECONNRESET" }, new Error("plain")]) {
    assert.equal(classifyFailure(error), "other");
  }
});

test("findCode() prefers an error's own code to its cause's", () => {
  const error = Object.assign(coded("UND_ERR_CONNECT_TIMEOUT"), { cause: coded("ECONNREFUSED") });
  assert.equal(findCode(error), "UND_ERR_CONNECT_TIMEOUT");
});

test("findCode() ends when errors are each other's cause", () => {
  const [one, other] = [new Error("one"), new Error("other")];
  one.cause = other;
  other.cause = one;
  assert.equal(findCode(one), undefined);
});
