import type { SigningAlgorithm } from "../base/jwt.ts";
import type { Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";

/** A signing key as it is stored; `private` is its PEM, encrypted by the seal. */
export interface StoredKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly private: string;
  readonly createdAtMs: number;
  readonly signsFromMs: number;
  /** The longest life of a token that it signed. */
  readonly tokenTtlMs: number;
}

const COLUMNS = sql`kid, alg, private, createdAtMs, signsFromMs, tokenTtlMs`;

/** Every key, in the order in which they sign; withdrawn ones are gone. */
export function listKeys(database: Database): Promise<StoredKey[]> {
  return database.query(sql`SELECT ${COLUMNS} FROM keys ORDER BY signsFromMs, createdAtMs, kid`);
}

/** Adds a key that takes over from the others at its `signsFromMs`. */
export function insertKey(key: StoredKey): Sql {
  return sql`INSERT INTO keys (${COLUMNS})
    SELECT ${key.kid}, ${key.alg}, ${key.private}, ${key.createdAtMs}, ${key.signsFromMs},
      ${key.tokenTtlMs}`;
}

/** Adds a key unless one signs already: of several processes only one does. */
export function insertKeyIfNoneSigns(key: StoredKey): Sql {
  return sql`${insertKey(key)}
    WHERE NOT EXISTS (SELECT 1 FROM keys WHERE signsFromMs <= ${key.signsFromMs})`;
}

/**
 * Takes a key out of use at once: it neither signs nor verifies, and its private half is gone. The
 * successor is added only where the key is the one that signs; an older one never signs again.
 */
export function withdrawKey(kid: string, successor: StoredKey): Sql[] {
  return [
    sql`${insertKey(successor)}
      WHERE ${kid} = (SELECT kid FROM keys WHERE signsFromMs <= ${successor.signsFromMs}
        ORDER BY signsFromMs DESC, createdAtMs DESC, kid DESC LIMIT 1)`,
    deleteKey(kid),
  ];
}

/** Notes that tokens from now on live this long, where that is longer than before. */
export function raiseTokenTtl(ttlMs: number): Sql {
  return sql`UPDATE keys SET tokenTtlMs = ${ttlMs} WHERE tokenTtlMs < ${ttlMs}`;
}

/** Removes a key that has nothing left to verify. */
export function deleteKey(kid: string): Sql {
  return sql`DELETE FROM keys WHERE kid = ${kid}`;
}
