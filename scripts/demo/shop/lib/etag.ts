import { hash } from "node:crypto";
import type { Answer } from "gatepost";

/** Returns data with its ETag, or 304 if the client has it already (RFC 9110 §13.1.2). */
export function withEtag<Body>(request: Request, body: Body): Answer<Body> {
  const etag = `"${hash("sha256", JSON.stringify(body), "base64url").slice(0, 22)}"`;
  const known = request.headers.get("if-none-match") ?? "";
  const isKnown = known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
  const headers = { etag, "cache-control": "no-cache" };
  return isKnown ? { status: 304, headers } : { status: 200, headers, body };
}
