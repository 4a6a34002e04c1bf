/** The migrations by which versions 2 to 14 each changed a database of the version before. */
export const OLD_MIGRATIONS: readonly string[] = [
  `
    ALTER TABLE subscriptions ADD COLUMN grant_id TEXT;
    ALTER TABLE subscriptions ADD COLUMN granted TEXT;
    ALTER TABLE subscriptions ADD COLUMN granted_after INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX subscriptions_by_grant ON subscriptions (grant_id) WHERE grant_id IS NOT NULL;
    DROP INDEX subscriptions_by_app;
    CREATE INDEX subscriptions_by_app ON subscriptions (app) WHERE status <> 'deleted';
    CREATE TEMP TABLE known_grants AS
      SELECT g.id, g.app, ifnull(g.user, g.app) AS principal, g.scope, g.made_at,
        g.revoked_at IS NULL AND ifnull(u.cut_at, 0) < g.made_at AND a.cut_at < g.made_at AS stands
      FROM (SELECT *, (SELECT sum(value * (instr('0123456789abcdefghijklmnopqrstuvwxyz',
            substr(grants.id, 2 + key, 1)) - 1)) FROM json_each('[2821109907456, 78364164096,
            2176782336, 60466176, 1679616, 46656, 1296, 36, 1]')) AS made_at FROM grants) g
        JOIN apps a ON a.id = g.app LEFT JOIN users u ON u.id = g.user;
    CREATE INDEX temp.known_grants_of ON known_grants (principal, app, stands, made_at, id);
    UPDATE subscriptions AS s SET grant_id = ifnull(
        (SELECT k.id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
          AND k.stands = 1 AND k.made_at <= s.created_at
          ORDER BY k.made_at DESC, k.id DESC LIMIT 1),
        (SELECT k.id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
          AND k.stands = 1 ORDER BY k.made_at DESC, k.id DESC LIMIT 1)) WHERE app <> 'login';
    UPDATE subscriptions AS s SET granted = CASE
        WHEN grant_id IS NOT NULL THEN (SELECT scope FROM grants WHERE id = grant_id)
        WHEN EXISTS (SELECT 1 FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app)
        THEN '' ELSE 'consumer' END
      WHERE app <> 'login';
    UPDATE subscriptions SET status = 'disabled', disabled_reason = 'grant revoked'
      WHERE granted = '' AND status IN ('active', 'paused');
    DROP TABLE known_grants;
    CREATE TABLE subscription_endings (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      owner TEXT NOT NULL,
      own INTEGER NOT NULL,
      scopes TEXT,
      deletes INTEGER NOT NULL,
      reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX subscription_endings_by_owner ON subscription_endings (owner, seq);
    CREATE TABLE event_scopes (
      name TEXT PRIMARY KEY,
      scope TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX revocations_by_target ON revocations (target);
    CREATE TRIGGER grant_ended AFTER UPDATE OF revoked_at ON grants
      WHEN OLD.revoked_at IS NULL AND NEW.access_until > NEW.revoked_at
    BEGIN
      INSERT INTO revocations (target, cut_at, until)
        VALUES (NEW.id, NEW.access_until, NEW.access_until);
    END;
    CREATE INDEX grants_of_user ON grants (user, id, app)
      WHERE revoked_at IS NULL AND user IS NOT NULL;
    CREATE INDEX grants_of_apps ON grants (app, id) WHERE user IS NULL AND refresh IS NOT NULL;
    ALTER TABLE grants ADD COLUMN previous BLOB;
    ALTER TABLE grants ADD COLUMN rotated_at INTEGER;
    ALTER TABLE consents ADD COLUMN cut_at INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE login_failures (
      account BLOB NOT NULL,
      place TEXT NOT NULL,
      until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX login_failures_by_account ON login_failures (account, place, until);
    CREATE INDEX login_failures_by_place ON login_failures (place, until);
    CREATE INDEX login_failures_by_end ON login_failures (until);
    CREATE TABLE clock_steps (count INTEGER NOT NULL) STRICT;
    INSERT INTO clock_steps (count) VALUES (0);
    ALTER TABLE cronjobs ADD COLUMN claim TEXT;
    ALTER TABLE users ADD COLUMN password_until INTEGER;
    ALTER TABLE audit ADD COLUMN app TEXT;
    ALTER TABLE subscriptions ADD COLUMN mean_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE subscriptions ADD COLUMN health TEXT
      AS (CASE WHEN standing = 'proven' AND mean_ms > 1000 THEN 'slow' ELSE standing END) VIRTUAL;
    DROP INDEX subscriptions_due;
    CREATE INDEX subscriptions_due ON subscriptions (health, due_at)
      WHERE status = 'active' AND due_at IS NOT NULL;
  `,
  `
    DROP INDEX subscriptions_due;
    ALTER TABLE subscriptions DROP COLUMN health;
    ALTER TABLE users RENAME COLUMN "password" TO phc;
    ALTER TABLE users RENAME COLUMN "scope" TO scopes;
    ALTER TABLE users RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE users RENAME COLUMN "cut_at" TO notBeforeMs;
    ALTER TABLE users RENAME COLUMN "password_until" TO passwordUntilMs;
    ALTER TABLE apps RENAME COLUMN "scope" TO scopes;
    ALTER TABLE apps RENAME COLUMN "redirect_uris" TO redirectUris;
    ALTER TABLE apps RENAME COLUMN "resource_server" TO resourceServer;
    ALTER TABLE apps RENAME COLUMN "old_secret" TO oldSecret;
    ALTER TABLE apps RENAME COLUMN "old_secret_until" TO oldSecretUntilMs;
    ALTER TABLE apps RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE apps RENAME COLUMN "cut_at" TO notBeforeMs;
    ALTER TABLE grants RENAME COLUMN "scope" TO scopes;
    ALTER TABLE grants RENAME COLUMN "refresh_until" TO refreshUntilMs;
    ALTER TABLE grants RENAME COLUMN "access_until" TO accessUntilMs;
    ALTER TABLE grants RENAME COLUMN "revoked_at" TO revokedAtMs;
    ALTER TABLE grants RENAME COLUMN "rotated_at" TO rotatedAtMs;
    ALTER TABLE grants RENAME COLUMN "until" TO untilMs;
    ALTER TABLE used_refresh_tokens RENAME COLUMN "grant_id" TO grantId;
    ALTER TABLE codes RENAME COLUMN "scope" TO scopes;
    ALTER TABLE codes RENAME COLUMN "redirect_uri" TO redirectUri;
    ALTER TABLE codes RENAME COLUMN "until" TO untilMs;
    ALTER TABLE sessions RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE sessions RENAME COLUMN "until" TO untilMs;
    ALTER TABLE consents RENAME COLUMN "scope" TO scopes;
    ALTER TABLE consents RENAME COLUMN "cut_at" TO notBeforeMs;
    ALTER TABLE keys RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE keys RENAME COLUMN "signs_from" TO signsFromMs;
    ALTER TABLE keys RENAME COLUMN "token_ttl" TO tokenTtlMs;
    ALTER TABLE revocations RENAME COLUMN "cut_at" TO notBeforeMs;
    ALTER TABLE revocations RENAME COLUMN "until" TO untilMs;
    ALTER TABLE login_failures RENAME COLUMN "until" TO untilMs;
    ALTER TABLE subscriptions RENAME COLUMN "disabled_reason" TO disabledReason;
    ALTER TABLE subscriptions RENAME COLUMN "old_secret" TO oldSecret;
    ALTER TABLE subscriptions RENAME COLUMN "old_secret_until" TO oldSecretUntilMs;
    ALTER TABLE subscriptions RENAME COLUMN "failing_since" TO failingSinceMs;
    ALTER TABLE subscriptions RENAME COLUMN "due_at" TO dueAtMs;
    ALTER TABLE subscriptions RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE subscriptions RENAME COLUMN "grant_id" TO grantId;
    ALTER TABLE subscriptions RENAME COLUMN "granted_after" TO grantedAfter;
    ALTER TABLE subscriptions RENAME COLUMN "mean_ms" TO meanMs;
    ALTER TABLE events RENAME COLUMN "scope" TO scopes;
    ALTER TABLE events RENAME COLUMN "upto" TO lastSubscription;
    ALTER TABLE events RENAME COLUMN "fanned_out" TO fannedOut;
    ALTER TABLE events RENAME COLUMN "created_at" TO createdAtMs;
    ALTER TABLE event_scopes RENAME COLUMN "scope" TO scopes;
    ALTER TABLE deliveries RENAME COLUMN "due_at" TO dueAtMs;
    ALTER TABLE deliveries RENAME COLUMN "finished_at" TO finishedAtMs;
    ALTER TABLE attempts RENAME COLUMN "at" TO startedAtMs;
    ALTER TABLE attempts RENAME COLUMN "duration_ms" TO durationMs;
    ALTER TABLE cronjobs RENAME COLUMN "next_at" TO nextAtMs;
    ALTER TABLE cronjobs RENAME COLUMN "lease_until" TO leaseUntilMs;
    ALTER TABLE cronjobs RENAME COLUMN "last_at" TO lastAtMs;
    ALTER TABLE cronjobs RENAME COLUMN "last_ms" TO lastDurationMs;
    ALTER TABLE cronjobs RENAME COLUMN "last_error" TO lastError;
    UPDATE users SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE apps SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE grants SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE codes SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE consents SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE events SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE event_scopes SET scopes = iif(scopes = '', '[]',
      '["' || replace(scopes, ' ', '","') || '"]') WHERE scopes IS NOT NULL;
    UPDATE apps SET grants = iif(grants = '', '[]',
      '["' || replace(grants, ' ', '","') || '"]') WHERE grants IS NOT NULL;
    UPDATE subscriptions SET granted = iif(granted = '', '[]',
      '["' || replace(granted, ' ', '","') || '"]') WHERE granted IS NOT NULL;
    ALTER TABLE subscriptions ADD COLUMN hasSucceeded INTEGER NOT NULL DEFAULT 0;
    UPDATE subscriptions SET hasSucceeded = 1 WHERE standing = 'proven';
    ALTER TABLE subscriptions DROP COLUMN standing;
    ALTER TABLE subscriptions ADD COLUMN health TEXT AS (CASE
      WHEN failingSinceMs IS NOT NULL THEN 'failing' WHEN NOT hasSucceeded THEN 'unknown'
      WHEN meanMs > 1000 THEN 'slow' ELSE 'healthy' END) VIRTUAL;
    CREATE INDEX subscriptions_due ON subscriptions (health, dueAtMs)
      WHERE status = 'active' AND dueAtMs IS NOT NULL;
  `,
  `
    ALTER TABLE events ADD COLUMN key TEXT;
    CREATE UNIQUE INDEX events_by_key ON events (name, key) WHERE key IS NOT NULL;
    ALTER TABLE users ADD COLUMN rate TEXT;
    ALTER TABLE apps ADD COLUMN rate TEXT;
    CREATE INDEX users_by_rate ON users (id, rate) WHERE rate IS NOT NULL;
    CREATE TRIGGER user_added AFTER INSERT ON users WHEN NEW.rate IS NOT NULL BEGIN
      UPDATE account_changes SET count = count + 1;
    END;
    CREATE INDEX apps_by_rate ON apps (id, rate) WHERE rate IS NOT NULL;
    CREATE TRIGGER app_added AFTER INSERT ON apps WHEN NEW.rate IS NOT NULL BEGIN
      UPDATE account_changes SET count = count + 1;
    END;
  `,
  `
    CREATE TABLE idempotency_keys (
      id BLOB PRIMARY KEY,
      asked BLOB NOT NULL,
      attempt TEXT NOT NULL,
      leaseUntilMs INTEGER NOT NULL,
      untilMs INTEGER NOT NULL,
      response TEXT NOT NULL DEFAULT ''
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_keys_by_end ON idempotency_keys (untilMs);
  `,
  `
    ALTER TABLE grants ADD COLUMN token BLOB;
    ALTER TABLE grants ADD COLUMN name TEXT;
    ALTER TABLE grants ADD COLUMN lastUsedAtMs INTEGER;
    DROP TRIGGER grant_ended;
    CREATE TRIGGER grant_ended AFTER UPDATE OF revokedAtMs ON grants
      WHEN OLD.revokedAtMs IS NULL AND NEW.accessUntilMs > NEW.revokedAtMs
    BEGIN
      UPDATE grants SET accessUntilMs = min(accessUntilMs, revokedAtMs + 3660000)
        WHERE id = NEW.id AND token IS NOT NULL;
      INSERT INTO revocations (target, notBeforeMs, untilMs)
        SELECT id, accessUntilMs, accessUntilMs FROM grants WHERE id = NEW.id;
    END;
  `,
  `
    ALTER TABLE apps ADD COLUMN requirePkce INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE apps ADD COLUMN jwks TEXT NOT NULL DEFAULT '[]'
      CHECK (jwks = '[]' OR coalesce(secret, oldSecret) IS NULL);
    CREATE TABLE client_assertions (
      hash BLOB PRIMARY KEY,
      untilMs INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX client_assertions_by_end ON client_assertions (untilMs);
  `,
  `
    CREATE TABLE device_codes (
      hash BLOB PRIMARY KEY,
      userCode BLOB NOT NULL UNIQUE,
      app TEXT NOT NULL,
      scopes TEXT NOT NULL,
      decision TEXT,
      untilMs INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX device_codes_by_app ON device_codes (app, untilMs);
    CREATE INDEX device_codes_by_end ON device_codes (untilMs);
  `,
  `
    ALTER TABLE account_changes ADD COLUMN issuers INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE issuers (
      id TEXT PRIMARY KEY,
      issuer TEXT NOT NULL UNIQUE,
      audience TEXT,
      scopes TEXT NOT NULL,
      scopeClaim TEXT NOT NULL,
      jwksUri TEXT NOT NULL,
      jwtType INTEGER NOT NULL,
      status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
      createdAtMs INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE principals (
      id TEXT PRIMARY KEY,
      issuer TEXT NOT NULL REFERENCES issuers ON DELETE CASCADE,
      subject TEXT NOT NULL,
      status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
      createdAtMs INTEGER NOT NULL,
      UNIQUE (issuer, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX principals_by_issuer ON principals (issuer, id);
    CREATE TRIGGER issuer_added AFTER INSERT ON issuers BEGIN
      UPDATE account_changes SET issuers = issuers + 1;
    END;
    CREATE TRIGGER issuer_changed AFTER UPDATE ON issuers BEGIN
      UPDATE account_changes SET issuers = issuers + 1;
    END;
    CREATE TRIGGER issuer_deleted AFTER DELETE ON issuers BEGIN
      UPDATE account_changes SET issuers = issuers + 1;
    END;
    CREATE TRIGGER principal_changed AFTER UPDATE ON principals BEGIN
      UPDATE account_changes SET issuers = issuers + 1;
    END;
    CREATE TRIGGER principal_deleted AFTER DELETE ON principals BEGIN
      UPDATE account_changes SET issuers = issuers + 1;
    END;
  `,
  `
    CREATE TABLE resources (
      id TEXT PRIMARY KEY,
      url TEXT NOT NULL,
      scopes TEXT NOT NULL,
      createdAtMs INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX resources_by_url ON resources (rtrim(url, '/'));
    ALTER TABLE apps ADD COLUMN metadataUrl TEXT;
    CREATE UNIQUE INDEX apps_by_client_id ON apps (ifnull(metadataUrl, id));
    ALTER TABLE grants ADD COLUMN resource TEXT;
    ALTER TABLE codes ADD COLUMN resource TEXT;
  `,
  `
    CREATE TABLE figures (
      stepMs INTEGER NOT NULL,
      key TEXT NOT NULL,
      atMs INTEGER NOT NULL,
      counts TEXT NOT NULL,
      PRIMARY KEY (stepMs, key, atMs)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX figures_by_time ON figures (stepMs, atMs);
    CREATE INDEX subscriptions_failing ON subscriptions (failingSinceMs, id)
      WHERE failingSinceMs IS NOT NULL AND status IN ('active', 'paused');
    CREATE TABLE muted_problems (
      id TEXT PRIMARY KEY,
      untilMs INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX muted_problems_by_end ON muted_problems (untilMs);
  `,
  `
    ALTER TABLE subscriptions ADD COLUMN pausedUntilMs INTEGER;
    CREATE INDEX subscriptions_by_endpoint ON subscriptions (endpoint COLLATE NOCASE);
    CREATE INDEX subscriptions_to_wake ON subscriptions (pausedUntilMs)
      WHERE status = 'paused' AND pausedUntilMs IS NOT NULL;
    ALTER TABLE events ADD COLUMN request TEXT;
    ALTER TABLE events ADD COLUMN source TEXT;
    ALTER TABLE events ADD COLUMN principal TEXT;
    CREATE INDEX events_by_request ON events (request, id) WHERE request IS NOT NULL;
    ALTER TABLE deliveries ADD COLUMN lastStatus INTEGER;
    ALTER TABLE deliveries ADD COLUMN lastError TEXT;
    ALTER TABLE apps ADD COLUMN owner TEXT REFERENCES users ON DELETE SET NULL;
    CREATE INDEX apps_by_owner ON apps (owner, id) WHERE owner IS NOT NULL;
    CREATE INDEX apps_by_name ON apps (name COLLATE NOCASE);
    ALTER TABLE sessions ADD COLUMN address TEXT;
    ALTER TABLE sessions ADD COLUMN agent TEXT;
    ALTER TABLE sessions ADD COLUMN seenAtMs INTEGER;
    CREATE INDEX sessions_by_user ON sessions (user);
    CREATE INDEX audit_by_address ON audit (address, id) WHERE address IS NOT NULL;
    CREATE TABLE resends (
      id TEXT PRIMARY KEY,
      actor TEXT NOT NULL,
      selection TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('running', 'stopped', 'done')),
      reached TEXT NOT NULL,
      bound TEXT NOT NULL,
      total INTEGER NOT NULL,
      done INTEGER NOT NULL DEFAULT 0,
      endedAtMs INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX resends_running ON resends (id) WHERE state = 'running';
  `,
  `
    ALTER TABLE users ADD COLUMN passwordPrinted INTEGER;
    CREATE INDEX codes_of_console ON codes (user) WHERE app = 'console';
  `,
  `
    DROP INDEX grants_of_user;
    CREATE INDEX grants_of_user ON grants (user, id, app, revokedAtMs)
      WHERE revokedAtMs IS NULL AND user IS NOT NULL;
    CREATE INDEX ended_grants_of_user ON grants (user, id)
      WHERE revokedAtMs IS NOT NULL AND user IS NOT NULL;
    DROP INDEX grants_by_user;
  `,
];
