import type { HttpRequest } from "../base/http_message.ts";

/** What a body is, as far as the service can read it. */
export interface BodyType {
  readonly kind: "json" | "form" | "other";
  /** Whether it is UTF-8 and not encoded: what is not would have to be decoded first. */
  readonly isPlain: boolean;
}

/**
 * Reads what a request says of its body: the media type without regard to case and parameters but
 * the charset (RFC 9110 §8.3), `+json` of any kind (RFC 6839 §3.1), and the coding (§8.4).
 */
export function bodyTypeOf({ headers }: Pick<HttpRequest, "headers">): BodyType {
  const [text = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.map((each) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(each)?.[1])
    .find((name) => name !== undefined);
  const coding = headers["content-encoding"] ?? "identity";
  const isPlain = (charset ?? "utf-8") === "utf-8" && coding.toLowerCase() === "identity";
  const type = text.trim();
  if (type === "application/x-www-form-urlencoded") return { kind: "form", isPlain };
  const isJson = type === "application/json" || /^[\w.-]+\/[\w.-]+\+json$/.test(type);
  return { kind: isJson ? "json" : "other", isPlain };
}
