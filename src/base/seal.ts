import { createCipheriv, createDecipheriv } from "node:crypto";
import { randomBytes } from "./secret.ts";

/** Closes secrets that must be read again (private keys, signing secrets) before they are stored. */
export interface Seal {
  /** Whether there is a key, so that what is closed is unreadable without it. */
  readonly active: boolean;
  /** The stored form of a secret; `context` names its place, and a value moved elsewhere does not open. */
  close(secret: string, context: string): string;
  /** The secret; throws SealError when it was closed with another key or has been altered. */
  open(stored: string, context: string): string;
}

/** A sealed value that this key does not open. */
export class SealError extends Error {
  override readonly name = "SealError";
}

const SEALED_PREFIX = "sealed:";
const PLAIN_PREFIX = "plain:";
const TAG_LENGTH = { authTagLength: 16 };

/** A seal with AES-256-GCM under a key of 32 bytes, or one that leaves secrets readable without a key. */
export function createSeal(key: Uint8Array | undefined): Seal {
  return {
    active: key !== undefined,
    close(secret, context) {
      if (key === undefined) return PLAIN_PREFIX + secret;
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
      const closed = Buffer.concat([nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return SEALED_PREFIX + closed.toString("base64url");
    },
    open(stored, context) {
      if (stored.startsWith(PLAIN_PREFIX)) return stored.slice(PLAIN_PREFIX.length);
      if (key === undefined) throw new SealError("The stored secret is sealed and no key was given");
      const closed = Buffer.from(stored.slice(SEALED_PREFIX.length), "base64url");
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, closed.subarray(0, 12), TAG_LENGTH)
          .setAAD(Buffer.from(context))
          .setAuthTag(closed.subarray(-16)); // throws unless there are 16 bytes
        return decipher.update(closed.subarray(12, -16), undefined, "utf8") + decipher.final("utf8");
      } catch (cause) {
        throw new SealError("The stored secret does not open with this key", { cause });
      }
    },
  };
}
