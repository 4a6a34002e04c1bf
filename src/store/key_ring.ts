import { newId } from "../base/id.ts";
import {
  generatePrivateKey,
  importKey,
  type SigningAlgorithm,
  type VerificationKey,
} from "../base/jwt.ts";
import { type Seal, SealError } from "../base/seal.ts";
import { type Database, UnavailableError } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { afterWrite } from "./after_write.ts";
import { type actorOf, deleteWhere, insertAudit } from "./audit.ts";

/** A signing key as it is stored; `private` is its PEM, encrypted by the seal. */
interface StoredKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly private: string;
  readonly createdAtMs: number;
  readonly signsFromMs: number;
  /** The longest life of a token that it signed. */
  readonly tokenTtlMs: number;
}

const COLUMNS = sql`kid, alg, private, createdAtMs, signsFromMs, tokenTtlMs`;

/** Stores a key, where `when` holds, that takes over from the others at its `signsFromMs`. */
export function insertKey(key: StoredKey, when = sql`TRUE`): Sql {
  return sql`INSERT INTO keys (${COLUMNS})
    SELECT ${key.kid}, ${key.alg}, ${key.private}, ${key.createdAtMs}, ${key.signsFromMs},
      ${key.tokenTtlMs} WHERE ${when}`;
}

/** If the oldest key starts later (the clock was set back), starts it now, before any new key. */
const dateFirstKey = (nowMs: number): Sql =>
  sql`UPDATE keys SET signsFromMs = ${nowMs - 1}
    WHERE kid = (SELECT kid FROM keys ORDER BY signsFromMs, createdAtMs, kid LIMIT 1)
      AND signsFromMs > ${nowMs}`;

const deleteKey = (kid: string) => deleteWhere(sql`keys`, sql`kid = ${kid}`);

export type RingKey = StoredKey & ReturnType<typeof importKey> & {
  /** When another key takes over; Infinity while none does. */
  readonly signsUntilMs: number;
  /** When the last token that it signed has expired. */
  readonly publishedUntilMs: number;
};

/** The actor who makes or withdraws a key; undefined where a server makes the first. */
type By = ReturnType<typeof actorOf>;

/** The keys of access tokens, decrypted and in memory. */
export type KeyRing = Awaited<ReturnType<typeof loadKeyRing>>;

/** How long a key is published before it signs. */
export const ROTATION_LEAD_MS = 10 * 60_000;

// A token's `exp` is in whole seconds, and another process learns of a new key a moment later.
const TOKEN_SLACK_MS = 2000;

/**
 * Loads the ring; on a database without a key it makes one. Throws SealError.
 *
 * @param options `alg` is that of new keys; each key keeps its own
 */
export async function loadKeyRing(options: {
  readonly database: Database;
  readonly seal: Seal;
  readonly alg: StoredKey["alg"];
  readonly accessTokenTtlMs: number;
  readonly now: () => number;
  /** The clock by which keys are deleted; without it no key is. */
  readonly cautiousNow?: () => number;
}) {
  const { database, seal, alg, accessTokenTtlMs, now, cautiousNow = () => 0 } = options;
  let keys: readonly RingKey[] = [];

  async function load(): Promise<void> {
    const stored = await database.query<StoredKey>(
      sql`SELECT ${COLUMNS} FROM keys ORDER BY signsFromMs, createdAtMs, kid`,
    );
    let sealError: SealError | undefined;
    const decrypt = ({ kid, alg, private: pem }: StoredKey) => {
      try {
        return importKey(kid, alg, seal.decrypt(pem, kid));
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        sealError = error;
        return undefined;
      }
    };
    keys = stored.flatMap((key, index) => {
      const known = keys.find(({ kid }) => kid === key.kid) ?? decrypt(key);
      const signsUntilMs = stored[index + 1]?.signsFromMs ?? Infinity;
      const publishedUntilMs = signsUntilMs + key.tokenTtlMs + TOKEN_SLACK_MS;
      return known ? [{ ...known, ...key, signsUntilMs, publishedUntilMs }] : [];
    });
    if (sealError) throw sealError; // withdrawn keys are out of use all the same
  }

  /** Loads what other processes have changed, and removes keys that nothing needs. */
  async function refresh(): Promise<void> {
    await load();
    // A process with shorter-lived tokens may have made a key, which this one needs for longer.
    const changes = keys.some((key) => key.tokenTtlMs < accessTokenTtlMs)
      ? [sql`UPDATE keys SET tokenTtlMs = max(tokenTtlMs, ${accessTokenTtlMs})`]
      : keys.filter((key) => key.publishedUntilMs <= cautiousNow())
        .map(({ kid }) => deleteKey(kid));
    if (changes.length === 0) return;
    await database.write(changes);
    await load();
  }

  /** Makes a key and writes its `batch`. Returns the id and each statement's changed rows. */
  async function makeKey(leadMs: number, batch: (made: StoredKey) => readonly Sql[]) {
    const pem = await generatePrivateKey(alg);
    const createdAtMs = now();
    const kid = newId("k", createdAtMs);
    const times = { createdAtMs, signsFromMs: createdAtMs + leadMs, tokenTtlMs: accessTokenTtlMs };
    const made = { kid, alg, private: seal.encrypt(pem, kid), ...times };
    const changes = await database.write([dateFirstKey(createdAtMs), ...batch(made)]);
    await afterWrite(refresh());
    return { kid, changes };
  }

  const audit = (action: string, target: string, by: By | undefined, when?: Sql) =>
    by ? [insertAudit({ ...by, action, target }, now(), when)] : [];

  function findSigning(): RingKey | undefined {
    const nowMs = now();
    // A clock that was set back must not leave the service without a key: then the oldest signs.
    const key = keys.findLast(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys[0];
    return key && key.signsUntilMs > nowMs ? key : undefined;
  }

  /** A key that may verify now. */
  const find = (kid: string): VerificationKey | undefined =>
    keys.find((key) => key.kid === kid && key.publishedUntilMs > now());

  await refresh();
  const isFirst = sql`NOT EXISTS (SELECT 1 FROM keys)`; // of several processes only one makes it
  if (keys.length === 0) await makeKey(0, (made) => [insertKey(made, isFirst)]);

  return {
    refresh,
    find,
    /** Keys whose tokens may be valid, and keys that will sign soon, in the order of signing. */
    published: (): readonly RingKey[] => keys.filter((key) => key.publishedUntilMs > now()),
    /**
     * The key that signs now: the last one whose start has passed. Undefined if another process
     * made that key and this one cannot decrypt it.
     */
    findSigning,
    /** The key that signs now. Throws UnavailableError if there is none here. */
    signing(): Pick<RingKey, "kid" | "alg" | "privateKey" | "signsFromMs"> {
      const key = findSigning();
      if (!key) throw new UnavailableError("This process cannot decrypt the signing key");
      return key;
    },
    /** Makes a key that signs after `leadMs`. */
    async rotate(leadMs: number, by?: By) {
      const { kid } = await makeKey(leadMs, (made) =>
        [insertKey(made), ...audit("key.rotate", made.kid, by)]);
      const key = keys.find((each) => each.kid === kid);
      if (!key) throw new Error("The new key was withdrawn at once");
      return key;
    },
    /**
     * Takes a key out of use at once: it neither signs nor verifies, and its private half is
     * deleted. If it was the one that signs, a new one does: an older one never signs again. False
     * if there is no such key.
     */
    async withdraw(kid: string, by?: By): Promise<boolean> {
      await refresh(); // another process may have made it a moment ago
      if (!find(kid)) return false;
      const remove = deleteKey(kid);
      const signs = (ms: number) => sql`${kid} = (SELECT kid FROM keys WHERE signsFromMs <= ${ms}
        ORDER BY signsFromMs DESC, createdAtMs DESC, kid DESC LIMIT 1)`;
      const { changes } = await makeKey(0, (made) => [
        ...audit("key.withdraw", kid, by, remove.when),
        insertKey(made, signs(made.signsFromMs)),
        remove,
      ]);
      return changes.at(-1) === 1;
    },
  };
}
