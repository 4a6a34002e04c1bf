import type { SigningAlgorithm } from "../base/jwt.ts";
import { type Database, sql, type Statement } from "./database.ts";

/** A signing key as it is stored; `private` is its PEM as the seal closed it. */
export interface StoredKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly private: string;
  readonly createdAtMs: number;
  readonly signsFromMs: number;
  /** The longest life of a token that it signed. */
  readonly tokenTtlMs: number;
}

/** Every key that has not been withdrawn, in the order in which they sign. */
export function listKeys(database: Database): Promise<StoredKey[]> {
  return database.query<StoredKey>(
    `SELECT kid, alg, private, created_at AS createdAtMs, signs_from AS signsFromMs,
       token_ttl AS tokenTtlMs
     FROM keys WHERE withdrawn_at IS NULL ORDER BY signs_from, created_at, kid`,
  );
}

/** Adds a key that takes over from the others at its `signsFromMs`. */
export function insertKey(key: StoredKey): Statement {
  return sql(
    `INSERT INTO keys (kid, alg, private, created_at, signs_from, token_ttl)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
    ...keyParams(key),
  );
}

/** Adds a key unless one signs already: of several processes only one does. */
export function insertKeyIfNoneSigns(key: StoredKey): Statement {
  return sql(
    `INSERT INTO keys (kid, alg, private, created_at, signs_from, token_ttl)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6
     WHERE NOT EXISTS (SELECT 1 FROM keys WHERE withdrawn_at IS NULL AND signs_from <= ?5)`,
    ...keyParams(key),
  );
}

function keyParams(key: StoredKey) {
  const { kid, alg, createdAtMs, signsFromMs, tokenTtlMs } = key;
  return [kid, alg, key.private, createdAtMs, signsFromMs, tokenTtlMs] as const;
}

/** Notes that tokens from now on live this long, where that is longer than before. */
export function raiseTokenTtl(ttlMs: number): Statement {
  return sql("UPDATE keys SET token_ttl = ?1 WHERE token_ttl < ?1", ttlMs);
}

/** Withdraws a key: from now on it neither signs nor verifies. */
export function withdrawKey(kid: string, nowMs: number): Statement {
  return sql(
    "UPDATE keys SET withdrawn_at = ?2 WHERE kid = ?1 AND withdrawn_at IS NULL",
    kid,
    nowMs,
  );
}

/** Removes a key that has nothing left to verify. */
export function deleteKey(kid: string): Statement {
  return sql("DELETE FROM keys WHERE kid = ?1", kid);
}
