/** New names that do not follow from the old ones, whatever the table. */
const NAMES: Readonly<Record<string, string>> = {
  password: "phc",
  scope: "scopes",
  upto: "lastSubscription",
  cut_at: "notBeforeMs",
  at: "startedAtMs",
  last_ms: "lastDurationMs",
};

const RENAMED: Readonly<Record<string, string>> = {
  users: "password scope created_at cut_at password_until",
  apps: "scope redirect_uris resource_server old_secret old_secret_until created_at cut_at",
  grants: "scope refresh_until access_until revoked_at rotated_at until",
  used_refresh_tokens: "grant_id",
  codes: "scope redirect_uri until",
  sessions: "created_at until",
  consents: "scope cut_at",
  keys: "created_at signs_from token_ttl",
  revocations: "cut_at until",
  login_failures: "until",
  subscriptions: "disabled_reason old_secret old_secret_until failing_since due_at created_at " +
    "grant_id granted_after mean_ms",
  events: "scope upto fanned_out created_at",
  event_scopes: "scope",
  deliveries: "due_at finished_at",
  attempts: "at duration_ms",
  cronjobs: "next_at lease_until last_at last_ms last_error",
};

/** `grant_id` becomes `grantId`, and `due_at` becomes `dueAtMs`: a time says its unit. */
const toField = (column: string): string =>
  NAMES[column] ??
    column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      .replace(/(At|until|Until|Since|From|Ttl)$/, "$1Ms");

/** Names separated by spaces become a JSON array. */
const toJson = (table: string, column: string): string =>
  `UPDATE ${table} SET ${column} = iif(${column} = '', '[]',
    '["' || replace(${column}, ' ', '","') || '"]') WHERE ${column} IS NOT NULL;`;

/** Columns bear the names of the fields, and lists are JSON arrays. */
export const MIGRATION_3 = `
  DROP INDEX subscriptions_due;
  ALTER TABLE subscriptions DROP COLUMN health;

  ${Object.entries(RENAMED).flatMap(([table, columns]) =>
    columns.split(" ").map((column) =>
      `ALTER TABLE ${table} RENAME COLUMN "${column}" TO ${toField(column)};`
    )
  ).join("\n  ")}

  ${["users", "apps", "grants", "codes", "consents", "events", "event_scopes"]
    .map((table) => toJson(table, "scopes")).join("\n  ")}
  ${toJson("apps", "grants")}
  ${toJson("subscriptions", "granted")}

  -- What is known of a subscriber is derived from what its last attempts came to.
  ALTER TABLE subscriptions ADD COLUMN hasSucceeded INTEGER NOT NULL DEFAULT 0;
  UPDATE subscriptions SET hasSucceeded = 1 WHERE standing = 'proven';
  ALTER TABLE subscriptions DROP COLUMN standing;
  ALTER TABLE subscriptions ADD COLUMN health TEXT AS (CASE
    WHEN failingSinceMs IS NOT NULL THEN 'failing' WHEN NOT hasSucceeded THEN 'unknown'
    WHEN meanMs > 1000 THEN 'slow' ELSE 'healthy' END) VIRTUAL;
  CREATE INDEX subscriptions_due ON subscriptions (health, dueAtMs)
    WHERE status = 'active' AND dueAtMs IS NOT NULL;
`;
