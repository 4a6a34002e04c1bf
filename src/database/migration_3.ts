const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  users: {
    password: "phc",
    scope: "scopes",
    created_at: "createdAtMs",
    cut_at: "notBeforeMs",
    password_until: "passwordUntilMs",
  },
  apps: {
    scope: "scopes",
    redirect_uris: "redirectUris",
    resource_server: "resourceServer",
    old_secret: "oldSecret",
    old_secret_until: "oldSecretUntilMs",
    created_at: "createdAtMs",
    cut_at: "notBeforeMs",
  },
  grants: {
    scope: "scopes",
    refresh_until: "refreshUntilMs",
    access_until: "accessUntilMs",
    revoked_at: "revokedAtMs",
    rotated_at: "rotatedAtMs",
    until: "untilMs",
  },
  used_refresh_tokens: { grant_id: "grantId" },
  codes: { scope: "scopes", redirect_uri: "redirectUri", until: "untilMs" },
  sessions: { created_at: "createdAtMs", until: "untilMs" },
  consents: { scope: "scopes", cut_at: "notBeforeMs" },
  keys: { created_at: "createdAtMs", signs_from: "signsFromMs", token_ttl: "tokenTtlMs" },
  revocations: { cut_at: "notBeforeMs", until: "untilMs" },
  login_failures: { until: "untilMs" },
  subscriptions: {
    disabled_reason: "disabledReason",
    old_secret: "oldSecret",
    old_secret_until: "oldSecretUntilMs",
    failing_since: "failingSinceMs",
    due_at: "dueAtMs",
    created_at: "createdAtMs",
    grant_id: "grantId",
    granted_after: "grantedAfter",
    mean_ms: "meanMs",
  },
  events: {
    scope: "scopes",
    upto: "lastSubscription",
    fanned_out: "fannedOut",
    created_at: "createdAtMs",
  },
  event_scopes: { scope: "scopes" },
  deliveries: { due_at: "dueAtMs", finished_at: "finishedAtMs" },
  attempts: { at: "startedAtMs", duration_ms: "durationMs" },
  cronjobs: {
    next_at: "nextAtMs",
    lease_until: "leaseUntilMs",
    last_at: "lastAtMs",
    last_ms: "lastDurationMs",
    last_error: "lastError",
  },
};

/** Names separated by spaces become a JSON array. */
const toJson = (table: string, column: string): string =>
  `UPDATE ${table} SET ${column} = iif(${column} = '', '[]',
    '["' || replace(${column}, ' ', '","') || '"]') WHERE ${column} IS NOT NULL;`;

/** Columns bear the names of the fields, and lists are JSON arrays. */
export const MIGRATION_3 = `
  DROP INDEX subscriptions_due;
  ALTER TABLE subscriptions DROP COLUMN health;

  ${Object.entries(RENAMED).flatMap(([table, columns]) =>
    Object.entries(columns).map(([from, to]) =>
      `ALTER TABLE ${table} RENAME COLUMN "${from}" TO ${to};`
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
