import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";

// One time for all of them, as if they had been made just before.
const MADE_AT_MS = Date.now() - 1000;
const ID_TIME = MADE_AT_MS.toString(36).padStart(9, "0");
const SECRET = "A".repeat(43);
const MONTH_MS = 30 * 86_400_000;

/** Adds so many grants of an app, each with a refresh token, and as many subscriptions. */
export function growDatabase(path: string, app: string, rows: number): void {
  const database = new DatabaseSync(path, { timeout: 5000 });
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN IMMEDIATE");
  database.function("token_hash", { deterministic: true }, (id) =>
    hash("sha256", `${String(id)}${SECRET}`, "buffer"));
  database.prepare(GRANTS).run(rows, ID_TIME, app, MADE_AT_MS + MONTH_MS, MADE_AT_MS + 3_600_000);
  database.prepare(SUBSCRIPTIONS).run(rows, ID_TIME, MADE_AT_MS);
  database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** The refresh token of the n-th grant that was added. */
export function seededRefreshToken(index: number): string {
  return `g${ID_TIME}${String(index).padStart(15, "0")}${SECRET}`;
}

const NUMBERS = `WITH RECURSIVE numbers(n) AS
  (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1)`;

const GRANTS = `${NUMBERS}
  INSERT INTO grants (id, app, user, type, scopes, refresh, refreshUntilMs, accessUntilMs)
  SELECT id, ?3, NULL, 'client_credentials', '["orders"]', token_hash(id), ?4, ?5
  FROM (SELECT printf('g%s%015d', ?2, n) AS id FROM numbers)`;

// A hundred for each of ten thousand principals, a thousand for each event.
const SUBSCRIPTIONS = `${NUMBERS}
  INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
  SELECT printf('s%s%015d', ?2, n), printf('u%s%015d', ?2, n / 100), 'login', 'event.' || n % 1000,
    'http://127.0.0.1:9/' || n, 'active', 'whsec_' || hex(randomblob(32)), ?3
  FROM numbers`;
