import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { createOpaqueTokens } from "../../src/api/authorization/token_issuer.ts";
import { createSeal } from "../../src/base/seal.ts";
import { loadPageKey } from "../../src/database/settings.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";

// All rows have the same time, as if they had just been made.
const MADE_AT_MS = Date.now() - 1000;
const ID_TIME = MADE_AT_MS.toString(36).padStart(9, "0");
const MONTH_MS = 30 * 86_400_000;

/**
 * Adds `rows` grants of an app and as many subscriptions. Returns the grants' refresh tokens, in
 * the form that this version issues.
 */
export async function growDatabase(path: string, app: string, rows: number): Promise<string[]> {
  const opened = openSqliteDatabase(path);
  const { make } = createOpaqueTokens(await loadPageKey(opened, createSeal()));
  await opened.close();
  const idOf = (row: number) => `g${ID_TIME}${String(row).padStart(15, "0")}`;
  const tokens = Array.from({ length: rows }, (_, row) => make(idOf(row)));
  const database = new DatabaseSync(path, { timeout: 5000 });
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN IMMEDIATE");
  database.function("token_hash", { deterministic: true }, (row) =>
    hash("sha256", tokens[Number(row)] ?? "", "buffer"));
  database.prepare(GRANTS).run(rows, ID_TIME, app, MADE_AT_MS + MONTH_MS, MADE_AT_MS + 3_600_000);
  database.prepare(SUBSCRIPTIONS).run(rows, ID_TIME, MADE_AT_MS);
  database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  return tokens;
}

const NUMBERS = `WITH RECURSIVE numbers(n) AS
  (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1)`;

const GRANTS = `${NUMBERS}
  INSERT INTO grants (id, app, user, type, scopes, refresh, refreshUntilMs, accessUntilMs)
  SELECT printf('g%s%015d', ?2, n), ?3, NULL, 'client_credentials', '["orders"]', token_hash(n),
    ?4, ?5 FROM numbers`;

// A hundred subscriptions for each of ten thousand principals, and a thousand for each event.
const SUBSCRIPTIONS = `${NUMBERS}
  INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
  SELECT printf('s%s%015d', ?2, n), printf('u%s%015d', ?2, n / 100), 'login', 'event.' || n % 1000,
    'http://127.0.0.1:9/' || n, 'active', 'whsec_' || hex(randomblob(32)), ?3
  FROM numbers`;
