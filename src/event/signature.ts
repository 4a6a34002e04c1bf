import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/** A new signing secret from 32 random bytes: `whsec_` and base64, as Standard Webhooks has it. */
export function formatSigningSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/** What a signature covers (Standard Webhooks, "signature scheme"). */
export interface SignedMessage {
  /** `webhook-id`: the delivery's, the same on every resend. */
  readonly id: string;
  /** `webhook-timestamp`: of this attempt, in seconds. */
  readonly timestampSeconds: number;
  readonly body: string;
}

/**
 * The value of `webhook-signature`: HMAC-SHA-256 over `id.timestamp.body`, once for each secret
 * that is valid now, so that a subscriber may change from one to the next.
 */
export function signMessage(message: SignedMessage, secrets: readonly string[]): string {
  const signed = `${message.id}.${message.timestampSeconds}.${message.body}`;
  return secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return "v1," + createHmac("sha256", key).update(signed).digest("base64");
  }).join(" ");
}
