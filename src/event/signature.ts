import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/** A new signing secret from 32 random bytes: `whsec_` and base64, as Standard Webhooks has it. */
export function formatSigningSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/**
 * The value of `webhook-signature`: HMAC-SHA-256 over `id.timestamp.body` (Standard Webhooks,
 * "signature scheme"), once for each secret that is valid now, so that a subscriber may change from
 * one to the next. The id is the delivery's, the time that of the attempt.
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
