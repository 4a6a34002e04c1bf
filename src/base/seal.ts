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
  /**
   * The stored form that `close` would give; the same one where that is how it was closed. Throws
   * SealError as `open` does.
   */
  renew(stored: string, context: string): string;
}

/** A sealed value that this key does not open. */
export class SealError extends Error {
  override readonly name = "SealError";
}

const SEALED_PREFIX = "sealed:";
const PLAIN_PREFIX = "plain:";
const TAG_LENGTH = { authTagLength: 16 };

/**
 * A seal with AES-256-GCM under a key of 32 bytes, or one that leaves secrets readable without a key.
 * What `older` keys closed opens as well.
 */
export function createSeal(key?: Uint8Array, ...older: readonly Uint8Array[]): Seal {
  function close(secret: string, context: string): string {
    if (key === undefined) return PLAIN_PREFIX + secret;
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
    const text = [cipher.update(secret, "utf8"), cipher.final()];
    const closed = Buffer.concat([nonce, ...text, cipher.getAuthTag()]);
    return SEALED_PREFIX + closed.toString("base64url");
  }

  function unseal(stored: string, context: string): { secret: string; isCurrent: boolean } {
    if (stored.startsWith(PLAIN_PREFIX)) {
      return { secret: stored.slice(PLAIN_PREFIX.length), isCurrent: key === undefined };
    }
    if (key === undefined) throw new SealError("The stored secret is sealed and no key was given");
    const closed = Buffer.from(stored.slice(SEALED_PREFIX.length), "base64url");
    let cause: unknown;
    for (const each of [key, ...older]) {
      try {
        return { secret: openWith(each, closed, context), isCurrent: each === key };
      } catch (error) {
        cause = error;
      }
    }
    throw new SealError("The stored secret does not open with this key", { cause });
  }

  return {
    active: key !== undefined,
    close,
    open: (stored, context) => unseal(stored, context).secret,
    renew(stored, context) {
      const { secret, isCurrent } = unseal(stored, context);
      return isCurrent ? stored : close(secret, context);
    },
  };
}

/** Throws where the key is not the one that closed it. */
function openWith(key: Uint8Array, closed: Buffer, context: string): string {
  const decipher = createDecipheriv("aes-256-gcm", key, closed.subarray(0, 12), TAG_LENGTH)
    .setAAD(Buffer.from(context))
    .setAuthTag(closed.subarray(-16)); // throws unless there are 16 bytes
  return decipher.update(closed.subarray(12, -16), undefined, "utf8") + decipher.final("utf8");
}
