import { fieldName } from "../base/fields.ts";

/** New column names that `fieldName` does not derive from the old ones, for all tables. */
const NAMES: Readonly<Record<string, string>> = {
  password: "phc",
  scope: "scopes",
  upto: "lastSubscription",
  cut_at: "notBeforeMs",
  at: "startedAtMs",
  last_ms: "lastDurationMs",
  token_ttl: "tokenTtlMs",
};

/** The columns of 0.1.0 that have other names today, under their old names. */
const RENAMED: Readonly<Record<string, string>> = {
  users: "password scope created_at cut_at",
  apps: "scope redirect_uris resource_server old_secret old_secret_until created_at cut_at",
  grants: "scope refresh_until access_until revoked_at until",
  used_refresh_tokens: "grant_id",
  codes: "scope redirect_uri until",
  sessions: "created_at until",
  consents: "scope",
  keys: "created_at signs_from token_ttl",
  revocations: "cut_at until",
  subscriptions: "disabled_reason old_secret old_secret_until failing_since due_at created_at",
  events: "scope upto fanned_out created_at",
  deliveries: "due_at finished_at",
  attempts: "at duration_ms",
  cronjobs: "next_at lease_until last_at last_ms last_error",
};

/** Turns names separated by spaces into a JSON array. */
const toJson = (table: string, column: string): string =>
  `UPDATE ${table} SET ${column} = iif(${column} = '', '[]',
    '["' || replace(${column}, ' ', '","') || '"]') WHERE ${column} IS NOT NULL;`;

/** Gives columns the names of their fields, and makes lists JSON arrays. */
export const RENAME = Object.entries(RENAMED).flatMap(([table, names]) =>
  names.split(" ").map((name) =>
    `ALTER TABLE ${table} RENAME COLUMN "${name}" TO ${NAMES[name] ?? fieldName(name)};
    ${name === "scope" ? toJson(table, "scopes") : ""}`
  )
).join("\n") + toJson("apps", "grants");

/**
 * Fills in what 0.1.0 lacks. A subscription depends on a grant of its user and app with scope
 * `consumer` that is neither revoked nor cut off. It is the newest from before the subscription,
 * since one of those made it, or else the newest. The time of a grant is in the digits of its id.
 * If all have been revoked, the subscription has ended. If the purge left no earlier one, it may
 * receive what the user has allowed the app. Else an app that acts for itself, is trusted or takes
 * passwords has all its scopes, and others the later grant's, or what needs no scope of its own.
 */
export const FILL_ADDED = `
  UPDATE subscriptions SET hasSucceeded = 1 WHERE standing = 'proven';
  ALTER TABLE subscriptions DROP COLUMN standing;
  INSERT INTO clock_steps (count) VALUES (0);
  CREATE TEMP TABLE known_grants AS
    SELECT g.id, g.app, g.scopes, ifnull(g.user, g.app) AS principal, g.madeAtMs,
      g.revokedAtMs IS NULL AND ifnull(u.notBeforeMs, 0) < g.madeAtMs
      AND a.notBeforeMs < g.madeAtMs AS stands
    FROM (SELECT *, (SELECT sum(value * (instr('0123456789abcdefghijklmnopqrstuvwxyz',
          substr(grants.id, 2 + key, 1)) - 1)) FROM json_each('[2821109907456, 78364164096,
          2176782336, 60466176, 1679616, 46656, 1296, 36, 1]')) AS madeAtMs FROM grants) g
      JOIN apps a ON a.id = g.app LEFT JOIN users u ON u.id = g.user
    WHERE instr(g.scopes, '"consumer"') > 0;
  CREATE INDEX temp.known_grants_of ON known_grants (principal, app, stands, madeAtMs, id);
  UPDATE subscriptions AS s SET grantId = ifnull(
      (SELECT id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
        AND stands = 1 AND madeAtMs <= s.createdAtMs ORDER BY madeAtMs DESC, id DESC LIMIT 1),
      (SELECT id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
        AND stands = 1 ORDER BY madeAtMs DESC, id DESC LIMIT 1)) WHERE app <> 'login';
  UPDATE subscriptions AS s SET granted = coalesce(
      (SELECT scopes FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
        AND stands = 1 AND madeAtMs <= s.createdAtMs ORDER BY madeAtMs DESC, id DESC LIMIT 1),
      (SELECT '[]' FROM known_grants k WHERE s.grantId IS NULL
        AND k.principal = s.principal AND k.app = s.app),
      (SELECT scopes FROM consents c WHERE c.user = s.principal AND c.app = s.app),
      nullif((SELECT json_group_array(value) FROM apps a, json_each(a.scopes) WHERE a.id = s.app
        AND (a.id = s.principal OR value <> 'backend'
          AND (a.trusted OR instr(a.grants, '"password"') > 0))), '[]'),
      (SELECT scopes FROM grants g WHERE g.id = s.grantId), '["consumer"]')
    WHERE app <> 'login';
  UPDATE subscriptions SET status = 'disabled', disabledReason = 'grant revoked'
    WHERE granted = '[]' AND status IN ('active', 'paused');
  DROP TABLE known_grants;
`;

/** Since version 12 a delivery holds the outcome of its last attempt, by which lists filter. */
export const FILL_LAST = `
  UPDATE deliveries SET (lastStatus, lastError) = (SELECT status, error FROM attempts
    WHERE delivery = id ORDER BY startedAtMs DESC, attempts.attempt DESC LIMIT 1);
`;
