import { createHmac, timingSafeEqual } from "node:crypto";

/** What a subscriber has when a callback comes in. */
export interface SignedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body as it came in, before any parsing. */
  readonly body: Buffer;
}

/** How far a subscriber's clock may be from the sender's. */
const TOLERANCE_SECONDS = 300;

/**
 * Verifies a callback as Standard Webhooks 1.0.0 tells subscribers to ("Signature scheme" and
 * "Verifying signatures"). The secret is base64 after `whsec_`. The signature is HMAC-SHA256 over
 * `{webhook-id}.{webhook-timestamp}.{payload}`. The header is a list, separated by spaces, of `v1,`
 * and base64, of which one must match. Returns the error, or undefined. It follows that text and
 * shares no code with the sender.
 */
export function findSignatureFault(
  { headers, body }: SignedRequest,
  secret: string,
  nowMs: number,
): string | undefined {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  const signatures = headers["webhook-signature"];
  if (typeof id !== "string" || id === "" || id.includes(".")) return "webhook-id";
  if (typeof timestamp !== "string" || !/^\d+$/.test(timestamp)) return "webhook-timestamp";
  if (typeof signatures !== "string") return "webhook-signature";
  if (Math.abs(Number(timestamp) - nowMs / 1000) > TOLERANCE_SECONDS) return "too old or too new";
  const match = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret);
  const key = Buffer.from(match?.[1] ?? "", "base64");
  if (key.length < 24 || key.length > 64) return "the secret has not 24 to 64 bytes";
  const expected = createHmac("sha256", key)
    .update(Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]))
    .digest();
  const isSigned = signatures.split(" ").some((entry) => {
    const [version, encoded = "", ...rest] = entry.split(",");
    const given = Buffer.from(encoded, "base64");
    return version === "v1" && rest.length === 0 && given.length === expected.length &&
      timingSafeEqual(given, expected);
  });
  return isSigned ? undefined : "no signature matches";
}
