import { newId } from "../base/id.ts";
import {
  generatePrivateKey,
  importKey,
  type SigningAlgorithm,
  type SigningKey,
  type VerificationKey,
} from "../base/jwt.ts";
import type { Seal } from "../base/seal.ts";
import type { Database } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import {
  deleteKey,
  insertKey,
  insertKeyIfNoneSigns,
  listKeys,
  raiseTokenTtl,
  type StoredKey,
  withdrawKey,
} from "./keys.ts";

/** A key of the ring, with the time when the last token that it signed has expired. */
export type RingKey = StoredKey & SigningKey & VerificationKey & {
  /** Infinity while no other key takes over. */
  readonly publishedUntilMs: number;
};

/** The keys of access tokens, decrypted and in memory. */
export interface KeyRing {
  /** The key that signs now: the last whose start has passed. */
  signing(): SigningKey & Pick<RingKey, "signsFromMs">;
  /** A key that may verify now. */
  find(kid: string): VerificationKey | undefined;
  /** What is published: keys that will sign soon, and keys whose tokens live on; in that order. */
  published(): readonly RingKey[];
  /**
   * Makes a key that signs after `leadMs`, when every verifier has had time to fetch it. What is to
   * be stored in the same batch is made from its `kid`.
   */
  rotate(leadMs: number, beside?: (kid: string) => readonly Sql[]): Promise<RingKey>;
  /**
   * Takes a key out of use at once; when it was the one that signs, a new one signs at once. False
   * when there is no such key.
   */
  withdraw(kid: string, beside?: readonly Sql[]): Promise<boolean>;
  /** Takes in what other processes have changed, and removes keys that nothing needs any more. */
  refresh(): Promise<void>;
}

/** What a key ring works with. */
export interface KeyRingOptions {
  readonly database: Database;
  readonly seal: Seal;
  /** Of new keys; each key keeps its own. */
  readonly alg: SigningAlgorithm;
  readonly accessTokenTtlMs: number;
  readonly now: () => number;
}

/** How long a key is published before it signs. */
export const ROTATION_LEAD_MS = 10 * 60_000;

// A token's `exp` is in whole seconds, and another process learns of a new key a moment later.
const TOKEN_SLACK_MS = 2000;

/** Loads the ring; on a database without a key that signs it makes one. Throws SealError. */
export async function loadKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { database, seal, alg, accessTokenTtlMs, now } = options;
  let keys: readonly RingKey[] = [];

  async function load(): Promise<void> {
    const stored = await listKeys(database);
    keys = stored.map((key, index) => {
      const known = keys.find(({ kid }) => kid === key.kid) ??
        importKey(key.kid, key.alg, seal.decrypt(key.private, key.kid));
      const successor = stored[index + 1];
      const publishedUntilMs = successor
        ? successor.signsFromMs + key.tokenTtlMs + TOKEN_SLACK_MS
        : Infinity;
      return { ...known, ...key, publishedUntilMs };
    });
  }

  async function refresh(): Promise<void> {
    await load();
    // A key may have been made where tokens live shorter than here; then it has not served yet.
    const isShort = keys.some((key) => key.tokenTtlMs < accessTokenTtlMs);
    const served = isShort ? [] : keys.filter((key) => key.publishedUntilMs <= now());
    if (served.length === 0 && !isShort) return;
    await database.write([
      ...isShort ? [raiseTokenTtl(accessTokenTtlMs)] : [],
      ...served.map(({ kid }) => deleteKey(kid)),
    ]);
    await load();
  }

  async function makeKey(leadMs: number): Promise<StoredKey> {
    const pem = await generatePrivateKey(alg);
    const createdAtMs = now();
    const kid = newId("k", createdAtMs);
    return {
      kid,
      alg,
      private: seal.encrypt(pem, kid),
      createdAtMs,
      signsFromMs: createdAtMs + leadMs,
      tokenTtlMs: accessTokenTtlMs,
    };
  }

  const find = (kid: string) =>
    keys.find((key) => key.kid === kid && key.publishedUntilMs > now());

  await refresh();
  if (!keys.some((key) => key.signsFromMs <= now())) {
    await database.write([insertKeyIfNoneSigns(await makeKey(0))]);
    await refresh();
  }

  return {
    refresh,
    find,
    published: () => keys.filter((key) => key.publishedUntilMs > now()),
    signing() {
      const nowMs = now();
      // A clock that was set back must not leave the service without a key: then the oldest signs.
      const key = keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys[0];
      if (!key) throw new Error("No key signs");
      return key;
    },
    async rotate(leadMs, beside = () => []) {
      const made = await makeKey(leadMs);
      await database.write([insertKey(made), ...beside(made.kid)]);
      await refresh();
      const key = keys.find(({ kid }) => kid === made.kid);
      if (!key) throw new Error("The new key was withdrawn at once");
      return key;
    },
    async withdraw(kid, beside = []) {
      await refresh(); // another process may have made it a moment ago
      if (!find(kid)) return false;
      const batch = withdrawKey(kid, await makeKey(0));
      const changes = await database.write([...batch, ...beside]);
      await refresh();
      return changes[batch.length - 1] === 1;
    },
  };
}
