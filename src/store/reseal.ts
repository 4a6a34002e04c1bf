import type { Seal } from "../base/seal.ts";
import { type Database, sql, type Statement } from "./database.ts";
import { PAGE_KEY, SEAL_CHECK } from "./settings.ts";

const BATCH = 500;

/**
 * Closes with the seal's first key what an older one closed, in bounded batches between which others
 * write as long as a batch took. What says which key a database needs (SEAL_CHECK) comes last, with
 * `beside`: wherever this ends early, every key is still needed, and it goes on the next time. Returns
 * how many rows it closed; throws the reason of `signal`.
 */
export async function resealDatabase(
  database: Database,
  seal: Seal,
  beside: Statement,
  signal: AbortSignal,
): Promise<number> {
  const renewed = [
    await renewSettings(database, seal, PAGE_KEY),
    await renewKeys(database, seal),
    await renewSubscriptions(database, seal, signal),
    await renewSettings(database, seal, SEAL_CHECK, [beside]),
  ];
  return renewed.reduce((sum, count) => sum + count, 0);
}

async function renewSettings(
  database: Database,
  seal: Seal,
  name: string,
  beside: readonly Statement[] = [],
): Promise<number> {
  const [row] = await database.query<{ value: string }>(
    "SELECT value FROM settings WHERE name = ?1",
    [name],
  );
  const value = row && seal.renew(row.value, name);
  if (value === undefined || value === row?.value) return 0;
  await database.write([
    sql("UPDATE settings SET value = ?2 WHERE name = ?1", name, value),
    ...beside,
  ]);
  return 1;
}

async function renewKeys(database: Database, seal: Seal): Promise<number> {
  const keys = await database.query<{ kid: string; private: string }>(
    "SELECT kid, private FROM keys",
  );
  const changed = keys.map((key) => ({ ...key, renewed: seal.renew(key.private, key.kid) }))
    .filter((key) => key.renewed !== key.private);
  if (changed.length > 0) {
    await database.write(changed.map(({ kid, renewed }) =>
      sql("UPDATE keys SET private = ?2 WHERE kid = ?1", kid, renewed)
    ));
  }
  return changed.length;
}

interface SubscriptionSecrets {
  readonly seq: number;
  readonly id: string;
  readonly secret: string;
  readonly oldSecret: string | null;
}

async function renewSubscriptions(
  database: Database,
  seal: Seal,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (let after = 0;;) {
    signal.throwIfAborted();
    const rows = await database.query<SubscriptionSecrets>(
      `SELECT seq, id, secret, old_secret AS oldSecret FROM subscriptions
       WHERE seq > ?1 ORDER BY seq LIMIT ?2`,
      [after, BATCH],
    );
    const last = rows.at(-1);
    if (last === undefined) return count;
    after = last.seq;
    const statements = rows.flatMap((row) => renewSubscription(row, seal));
    if (statements.length === 0) continue;
    const beganMs = performance.now();
    const changes = await database.write(statements);
    count += changes.reduce((sum, each) => sum + each, 0);
    const tookMs = performance.now() - beganMs;
    await new Promise((resolve) => setTimeout(resolve, tookMs));
  }
}

/** Leaves a secret alone that was rotated meanwhile: whoever did that closed it with the first key. */
function renewSubscription(row: SubscriptionSecrets, seal: Seal): Statement[] {
  const { seq, id, secret, oldSecret } = row;
  const renewed = seal.renew(secret, id);
  const oldRenewed = oldSecret === null ? null : seal.renew(oldSecret, id);
  if (renewed === secret && oldRenewed === oldSecret) return [];
  return [
    sql(
      `UPDATE subscriptions SET secret = ?2, old_secret = ?3
       WHERE seq = ?1 AND secret = ?4 AND old_secret IS ?5`,
      seq,
      renewed,
      oldRenewed,
      secret,
      oldSecret,
    ),
  ];
}
