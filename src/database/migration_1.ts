/** The schema of 0.1.0. */
export const MIGRATION_1 = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE users (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL COLLATE NOCASE UNIQUE,
    password TEXT NOT NULL,              -- PHC string of argon2id
    scope TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    created_at INTEGER NOT NULL,
    cut_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE apps (
    id TEXT PRIMARY KEY,                 -- client_id
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    origin TEXT NOT NULL,                -- of the url, for CORS
    type TEXT NOT NULL CHECK (type IN ('confidential', 'public')),
    scope TEXT NOT NULL,
    grants TEXT NOT NULL,                -- allowed grant types, separated by spaces
    redirect_uris TEXT NOT NULL,         -- JSON array
    trusted INTEGER NOT NULL,
    resource_server INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    secret BLOB,                         -- SHA-256; none for a public app
    old_secret BLOB,                     -- the one before, valid until
    old_secret_until INTEGER,
    created_at INTEGER NOT NULL,
    cut_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX apps_by_origin ON apps (origin) WHERE status = 'active';

  -- Counts the changes of apps and users: whoever keeps some in memory asks it for news.
  CREATE TABLE account_changes (count INTEGER NOT NULL) STRICT;
  INSERT INTO account_changes (count) VALUES (0);
  CREATE TRIGGER app_changed AFTER UPDATE ON apps BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER app_deleted AFTER DELETE ON apps BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER user_changed AFTER UPDATE ON users BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER user_deleted AFTER DELETE ON users BEGIN
    UPDATE account_changes SET count = count + 1;
  END;

  -- One authorization. No reference to users and apps: those may be deleted while a grant that has
  -- ended with them waits for the purge.
  CREATE TABLE grants (
    id TEXT PRIMARY KEY,                 -- its time is the time of the user's decision
    app TEXT NOT NULL,                   -- client_id, or 'login'
    user TEXT,                           -- none where the app acts for itself
    type TEXT NOT NULL,                  -- the grant type that made it, or 'login'
    scope TEXT NOT NULL,
    code BLOB,                           -- SHA-256 of the code that it came from
    refresh BLOB,                        -- SHA-256 of the refresh token that is good now
    refresh_until INTEGER NOT NULL,      -- 0 without a refresh token
    access_until INTEGER NOT NULL,       -- when the last access token expires
    revoked_at INTEGER,
    until INTEGER NOT NULL AS (max(refresh_until, access_until)) VIRTUAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_user ON grants (user, id) WHERE user IS NOT NULL;
  CREATE INDEX grants_by_app ON grants (app, id);
  CREATE INDEX grants_by_end ON grants (until);

  -- Refresh tokens that were exchanged: presenting one again reveals theft.
  CREATE TABLE used_refresh_tokens (
    grant_id TEXT NOT NULL REFERENCES grants ON DELETE CASCADE,
    hash BLOB NOT NULL,
    PRIMARY KEY (grant_id, hash)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE codes (
    id TEXT PRIMARY KEY,                 -- becomes the id of the grant
    hash BLOB NOT NULL,
    app TEXT NOT NULL,
    user TEXT NOT NULL,
    scope TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    challenge TEXT,                      -- PKCE, S256
    until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX codes_by_end ON codes (until);

  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,               -- SHA-256 of the cookie's value
    user TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_end ON sessions (until);

  CREATE TABLE consents (
    user TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps ON DELETE CASCADE,
    scope TEXT NOT NULL,
    PRIMARY KEY (user, app)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX consents_by_app ON consents (app);

  CREATE TABLE keys (
    kid TEXT PRIMARY KEY,
    alg TEXT NOT NULL,
    private TEXT NOT NULL,               -- PKCS#8 PEM, sealed where there is a key
    created_at INTEGER NOT NULL,
    signs_from INTEGER NOT NULL,
    token_ttl INTEGER NOT NULL           -- the longest life of a token that it signed, in ms
  ) STRICT, WITHOUT ROWID;

  -- What every process must know at once: tokens of the target (a jti, grant, user or app) whose
  -- grant was made at cut_at or before are no good. Kept until the last such token has expired.
  CREATE TABLE revocations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    cut_at INTEGER NOT NULL,
    until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX revocations_by_end ON revocations (until);

  CREATE TABLE subscriptions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,             -- user id, or client_id of an app acting for itself
    app TEXT NOT NULL,                   -- client_id of the token that made it, or 'login'
    event TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'disabled', 'deleted')),
    disabled_reason TEXT,
    secret TEXT NOT NULL,                -- sealed where there is a key
    old_secret TEXT,                     -- signs beside the new one, until
    old_secret_until INTEGER,
    standing TEXT NOT NULL DEFAULT 'new' -- what its last attempt came to
      CHECK (standing IN ('new', 'proven', 'failing')),
    failing_since INTEGER,               -- of the first failed attempt since the last success
    due_at INTEGER,                      -- of its turn in the distributor; none without pending work
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX subscriptions_by_principal ON subscriptions (principal, event, endpoint)
    WHERE status <> 'deleted';
  CREATE INDEX subscriptions_by_event ON subscriptions (event, seq)
    WHERE status IN ('active', 'paused');
  CREATE INDEX subscriptions_due ON subscriptions (standing, due_at)
    WHERE status = 'active' AND due_at IS NOT NULL;
  CREATE INDEX subscriptions_by_app ON subscriptions (app);
  CREATE INDEX subscriptions_listed ON subscriptions (id) WHERE status <> 'deleted';
  CREATE INDEX subscriptions_deleted ON subscriptions (seq) WHERE status = 'deleted';
  -- Those that have ended and whose pending deliveries are still to be cancelled.
  CREATE INDEX subscriptions_to_clear ON subscriptions (seq)
    WHERE status IN ('disabled', 'deleted') AND due_at IS NOT NULL;

  CREATE TABLE events (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    subject TEXT,                        -- deliver to this principal alone
    scope TEXT NOT NULL,                 -- what a subscriber must be allowed; '' = nothing
    status TEXT NOT NULL CHECK (status IN ('pending', 'distributed')),
    upto INTEGER NOT NULL,               -- the last subscription that existed at dispatch
    fanned_out INTEGER NOT NULL DEFAULT 0, -- the last subscription that has its delivery
    created_at INTEGER NOT NULL,
    data TEXT NOT NULL                   -- JSON, sent byte for byte; last: the rest is read without
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_by_status ON events (status, id);
  CREATE INDEX events_by_name ON events (name, status, id);

  CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,                 -- made of the event's id and the subscription's number
    event TEXT NOT NULL,                 -- no reference: the purge removes the event after these
    subscription INTEGER NOT NULL REFERENCES subscriptions,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL DEFAULT 0,  -- attempts recorded since it was (re)sent by hand
    due_at INTEGER NOT NULL,             -- not before; a claim moves it to the end of its lease
    claim TEXT,                          -- whose lease that is: the name of a process
    finished_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX deliveries_due ON deliveries (subscription, due_at) WHERE status = 'pending';
  CREATE INDEX deliveries_by_subscription ON deliveries (subscription, status, id);
  CREATE INDEX deliveries_by_status ON deliveries (status, id);
  CREATE INDEX deliveries_claimed ON deliveries (claim, due_at) WHERE claim IS NOT NULL;

  CREATE TABLE attempts (
    delivery TEXT NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,            -- 1 … 4, as sent in gatepost-attempt
    status INTEGER,                      -- of the answer; none where there was none
    error TEXT,                          -- the kind of failure; none after an answer
    duration_ms INTEGER NOT NULL,
    snippet TEXT,                        -- the answer's first bytes, for the backend alone
    PRIMARY KEY (delivery, at, attempt)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE cronjobs (
    name TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL DEFAULT 0, -- while a process runs it
    last_at INTEGER,
    last_ms INTEGER,
    last_error TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    address TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX audit_by_actor ON audit (actor, id);
  CREATE INDEX audit_by_action ON audit (action, id);
  CREATE INDEX audit_by_target ON audit (target, id);
`;
