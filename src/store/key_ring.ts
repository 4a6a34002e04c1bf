import { newId } from "../base/id.ts";
import {
  generatePrivateKey,
  openKey,
  type SigningAlgorithm,
  type SigningKey,
  type VerificationKey,
} from "../base/jwt.ts";
import type { Seal } from "../base/seal.ts";
import type { Database } from "./database.ts";
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

/** The keys of access tokens, open and in memory. */
export interface KeyRing {
  /** The key that signs now: the last whose time has come. */
  signing(): SigningKey;
  /** A key that may verify now. */
  find(kid: string): VerificationKey | undefined;
  /** What is published: keys that will sign soon, and keys whose tokens live on. */
  published(): readonly RingKey[];
  /** Makes a key that signs after `leadMs`, when every verifier has had time to fetch it. */
  rotate(leadMs: number): Promise<RingKey | undefined>;
  /** Takes a key out of use at once; when it was the one that signs, a successor signs at once. */
  withdraw(kid: string): Promise<boolean>;
  /** Takes in what other processes have changed, and removes keys that have served. */
  refresh(): Promise<void>;
}

/** What a key ring works with. */
export interface KeyRingOptions {
  readonly database: Database;
  readonly seal: Seal;
  readonly alg: SigningAlgorithm;
  readonly accessTokenTtlMs: number;
  readonly now: () => number;
}

/** How long a key is published before it signs. */
export const rotationLeadMs = 10 * 60_000;

/** Clocks of several processes may differ by this. */
const clockSkewMs = 1000;

/** Opens the ring; on a database without a key that signs it makes one. Throws SealError. */
export async function openKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { database, seal, alg, accessTokenTtlMs, now } = options;
  let keys: RingKey[] = [];

  async function refresh(): Promise<void> {
    const stored = await listKeys(database);
    keys = stored.map((key, index) => {
      const known = keys.find(({ kid }) => kid === key.kid) ??
        openKey(key.kid, key.alg, seal.open(key.private, key.kid));
      const successor = stored[index + 1];
      const publishedUntilMs = successor
        ? successor.signsFromMs + key.tokenTtlMs + clockSkewMs
        : Infinity;
      return { ...known, ...key, publishedUntilMs };
    });
    const served = keys.filter((key) => key.publishedUntilMs <= now());
    if (served.length === 0) return;
    await database.write(served.map(({ kid }) => deleteKey(kid)));
    keys = keys.filter((key) => !served.includes(key));
  }

  function makeKey(signsFromMs: number): StoredKey {
    const createdAtMs = now();
    const kid = newId("k", createdAtMs);
    const pem = seal.close(generatePrivateKey(alg), kid);
    return { kid, alg, private: pem, createdAtMs, signsFromMs, tokenTtlMs: accessTokenTtlMs };
  }

  const find = (kid: string) => keys.find((key) => key.kid === kid && key.publishedUntilMs > now());

  await refresh();
  if (!keys.some((key) => key.signsFromMs <= now())) {
    await database.write([insertKeyIfNoneSigns(makeKey(now()))]);
    await refresh();
  } else if (keys.some((key) => key.tokenTtlMs < accessTokenTtlMs)) {
    await database.write([raiseTokenTtl(accessTokenTtlMs)]);
    await refresh();
  }

  return {
    refresh,
    find,
    published: () => keys.filter((key) => key.publishedUntilMs > now()),
    signing() {
      const nowMs = now();
      const key = keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs);
      if (!key) throw new Error("No key signs");
      return key;
    },
    async rotate(leadMs) {
      const key = makeKey(now() + leadMs);
      await database.write([insertKey(key)]);
      await refresh();
      return keys.find(({ kid }) => kid === key.kid);
    },
    async withdraw(kid) {
      if (!find(kid)) return false;
      const [changed] = await database.write([
        withdrawKey(kid, now()),
        insertKeyIfNoneSigns(makeKey(now())),
      ]);
      await refresh();
      return changed === 1;
    },
  };
}
