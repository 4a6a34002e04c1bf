import { createCipheriv, createDecipheriv } from "node:crypto";
import { randomBytes } from "./secret.ts";

/** Encrypts secrets that must be read again (private keys, signing secrets) for the database. */
export type Seal = ReturnType<typeof createSeal>;

/** A stored value that this key does not decrypt. */
export class SealError extends Error {
  override readonly name = "SealError";
}

const SEALED_PREFIX = "sealed:";
const PLAIN_PREFIX = "plain:";
const TAG_LENGTH = { authTagLength: 16 };

/**
 * Makes a seal that encrypts with AES-256-GCM under a key of 32 bytes. Without a key, secrets stay
 * readable. It also decrypts what `older` keys encrypted.
 */
export function createSeal(key?: Uint8Array, ...older: readonly Uint8Array[]) {
  /** Returns the stored form of a secret, which can only be decrypted with the same `context`. */
  function encrypt(secret: string, context: string): string {
    if (key === undefined) return PLAIN_PREFIX + secret;
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
    const text = [cipher.update(secret, "utf8"), cipher.final()];
    const bytes = Buffer.concat([nonce, ...text, cipher.getAuthTag()]);
    return SEALED_PREFIX + bytes.toString("base64url");
  }

  function unseal(stored: string, context: string): { secret: string; isCurrent: boolean } {
    if (stored.startsWith(PLAIN_PREFIX)) {
      return { secret: stored.slice(PLAIN_PREFIX.length), isCurrent: key === undefined };
    }
    if (key === undefined) throw new SealError("The stored secret is encrypted; no key was given");
    const bytes = Buffer.from(stored.slice(SEALED_PREFIX.length), "base64url");
    let cause: unknown;
    for (const each of [key, ...older]) {
      try {
        return { secret: decryptWith(each, bytes, context), isCurrent: each === key };
      } catch (error) {
        cause = error;
      }
    }
    throw new SealError("The stored secret cannot be decrypted with this key", { cause });
  }

  return {
    /** Whether there is a key, so that what is stored is unreadable without it. */
    active: key !== undefined,
    encrypt,
    /** Returns the secret; throws SealError if another key encrypted it or it has been altered. */
    decrypt: (stored: string, context: string) => unseal(stored, context).secret,
    /** Returns the form under the current key, maybe `stored` itself; throws as `decrypt`. */
    renew(stored: string, context: string): string {
      const { secret, isCurrent } = unseal(stored, context);
      return isCurrent ? stored : encrypt(secret, context);
    },
  };
}

/** Throws where another key encrypted the bytes. */
function decryptWith(key: Uint8Array, bytes: Buffer, context: string): string {
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), TAG_LENGTH)
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-16)); // throws unless there are 16 bytes
  return decipher.update(bytes.subarray(12, -16), undefined, "utf8") + decipher.final("utf8");
}
