import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/** Formats 32 random bytes as a signing secret of Standard Webhooks: `whsec_` and base64. */
export function formatSigningSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/**
 * Returns the value of `webhook-signature` (Standard Webhooks, "signature scheme"): HMAC-SHA-256
 * over `id.timestamp.body`, once for each valid secret, so that a subscriber can change from one
 * to the next. `id` is the delivery's id, the timestamp is the time of the attempt.
 */
export function signMessage(
  { id, timestampSeconds, body }:
    Readonly<Record<"id" | "body", string>> & { readonly timestampSeconds: number },
  secrets: readonly string[],
): string {
  const signed = `${id}.${timestampSeconds}.${body}`;
  return secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return "v1," + createHmac("sha256", key).update(signed).digest("base64");
  }).join(" ");
}
