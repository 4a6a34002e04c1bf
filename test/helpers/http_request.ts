import type { HttpRequest } from "../../src/base/http_message.ts";
import { Problem } from "../../src/base/problem.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { NEVER } from "./never.ts";

/** A caller with scope `backend`, whose token expires at that time. */
export function backendCaller(expiresAtMs: number): Caller {
  return {
    sub: "u00000000",
    kind: "user",
    clientId: "login",
    scopes: ["backend"],
    grantId: "g00000000",
    jti: "j00000000",
    expiresAtMs,
  };
}

/** A request as the pipeline gets it, without a socket: by default GET / from 192.0.2.1. */
export function sampleRequest(
  more: Partial<Omit<HttpRequest, "readBody">> & { readonly body?: string | Uint8Array } = {},
): HttpRequest {
  const { body = "", ...rest } = more;
  const bytes = Buffer.from(body);
  return {
    id: "r1",
    method: "GET",
    path: "/",
    query: "",
    headers: {},
    address: "192.0.2.1",
    signal: NEVER,
    isGone: false,
    abort() {},
    readBody(maxBytes) {
      return bytes.length > maxBytes
        ? Promise.reject(new Problem(413, "too_large", "The body is too large."))
        : Promise.resolve(bytes);
    },
    ...rest,
  };
}
