/** What versions 4 to 13 each did to a database of the one before, by their own programs. */
export const OLD_MIGRATIONS: readonly string[] = [
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
];
