/**
 * The newest schema, of a database that is new; an older one becomes the same by the migrations.
 *
 * Conventions: columns bear the names of the fields. Times are milliseconds since 1970. Ids sort by
 * the time they were made, so tables keyed by them grow at one end. Lists of names are JSON arrays.
 * A user's, app's or consent's `notBeforeMs` ends every grant and session made at that time or
 * before, without touching their rows.
 */
export const SCHEMA = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE users (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL COLLATE NOCASE UNIQUE,
    phc TEXT NOT NULL,                   -- PHC string of argon2id
    scopes TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    createdAtMs INTEGER NOT NULL,
    notBeforeMs INTEGER NOT NULL DEFAULT 0,
    passwordUntilMs INTEGER              -- of a one-time password, 0 once it was used; else none
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE apps (
    id TEXT PRIMARY KEY,                 -- client_id
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    origin TEXT NOT NULL,                -- of the url, for CORS
    type TEXT NOT NULL CHECK (type IN ('confidential', 'public')),
    scopes TEXT NOT NULL,
    grants TEXT NOT NULL,                -- allowed grant types
    redirectUris TEXT NOT NULL,
    trusted INTEGER NOT NULL,
    resourceServer INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    secret BLOB,                         -- SHA-256; none for a public app
    oldSecret BLOB,                      -- the one before, valid until
    oldSecretUntilMs INTEGER,
    createdAtMs INTEGER NOT NULL,
    notBeforeMs INTEGER NOT NULL DEFAULT 0
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
    scopes TEXT NOT NULL,
    code BLOB,                           -- SHA-256 of the code that it came from
    refresh BLOB,                        -- SHA-256 of the refresh token that is good now
    previous BLOB,                       -- of the one before, whose response may have been lost;
                                         -- none where that has been made good
    rotatedAtMs INTEGER,
    refreshUntilMs INTEGER NOT NULL,     -- 0 without a refresh token
    accessUntilMs INTEGER NOT NULL,      -- when the last access token expires
    revokedAtMs INTEGER,
    untilMs INTEGER NOT NULL AS (max(refreshUntilMs, accessUntilMs)) VIRTUAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_user ON grants (user, id) WHERE user IS NOT NULL;
  CREATE INDEX grants_by_app ON grants (app, id);
  CREATE INDEX grants_by_end ON grants (untilMs);
  -- A user's grants that have not been ended, of which there are some hundred at most.
  CREATE INDEX grants_of_user ON grants (user, id, app)
    WHERE revokedAtMs IS NULL AND user IS NOT NULL;
  -- Refresh tokens of apps that act for themselves.
  CREATE INDEX grants_of_apps ON grants (app, id) WHERE user IS NULL AND refresh IS NOT NULL;
  -- Ends the access tokens of a grant that ends. Without a time, unlike a user's or an app's end: a
  -- grant that has ended makes no more tokens.
  CREATE TRIGGER grant_ended AFTER UPDATE OF revokedAtMs ON grants
    WHEN OLD.revokedAtMs IS NULL AND NEW.accessUntilMs > NEW.revokedAtMs
  BEGIN
    INSERT INTO revocations (target, notBeforeMs, untilMs)
      VALUES (NEW.id, NEW.accessUntilMs, NEW.accessUntilMs);
  END;

  -- Refresh tokens of 0.1.0 that were exchanged: presenting one again reveals theft. Later ones
  -- carry a proof of their own.
  CREATE TABLE used_refresh_tokens (
    grantId TEXT NOT NULL REFERENCES grants ON DELETE CASCADE,
    hash BLOB NOT NULL,
    PRIMARY KEY (grantId, hash)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE codes (
    id TEXT PRIMARY KEY,                 -- becomes the id of the grant
    hash BLOB NOT NULL,
    app TEXT NOT NULL,
    user TEXT NOT NULL,
    scopes TEXT NOT NULL,
    redirectUri TEXT NOT NULL,
    challenge TEXT,                      -- PKCE, S256
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX codes_by_end ON codes (untilMs);

  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,               -- SHA-256 of the cookie's value
    user TEXT NOT NULL,
    createdAtMs INTEGER NOT NULL,
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_end ON sessions (untilMs);

  CREATE TABLE consents (
    user TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    notBeforeMs INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (user, app)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX consents_by_app ON consents (app);

  -- Tries of a password, for as long as they count as failed: each is one until it is known to be
  -- none.
  CREATE TABLE login_failures (
    account BLOB NOT NULL,               -- SHA-256 of what was sent as a name
    place TEXT NOT NULL,                 -- the network, app or device that it came from
    untilMs INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX login_failures_by_account ON login_failures (account, place, untilMs);
  CREATE INDEX login_failures_by_place ON login_failures (place, untilMs);
  CREATE INDEX login_failures_by_end ON login_failures (untilMs);

  CREATE TABLE keys (
    kid TEXT PRIMARY KEY,
    alg TEXT NOT NULL,
    private TEXT NOT NULL,               -- PKCS#8 PEM, sealed where there is a key
    createdAtMs INTEGER NOT NULL,
    signsFromMs INTEGER NOT NULL,
    tokenTtlMs INTEGER NOT NULL          -- the longest life of a token that it signed
  ) STRICT, WITHOUT ROWID;

  -- What every process must know at once: tokens of the target (a jti, grant, user or app) whose
  -- grant was made at notBeforeMs or before are no good. Kept until the last such token expires.
  CREATE TABLE revocations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    notBeforeMs INTEGER NOT NULL,
    untilMs INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX revocations_by_end ON revocations (untilMs);
  CREATE INDEX revocations_by_target ON revocations (target);

  CREATE TABLE subscriptions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,             -- user id, or client_id of an app acting for itself
    app TEXT NOT NULL,                   -- client_id of the token that made it, or 'login'
    grantId TEXT,                        -- of the token that made it or set it active
    granted TEXT,                        -- that token's scopes; none: by own login, all that its
                                         -- user has; '[]': what made it has ended
    grantedAfter INTEGER NOT NULL DEFAULT 0, -- the last ending then: later ones may concern it
    event TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'disabled', 'deleted')),
    disabledReason TEXT,
    secret TEXT NOT NULL,                -- sealed where there is a key
    oldSecret TEXT,                      -- signs beside the new one, until
    oldSecretUntilMs INTEGER,
    hasSucceeded INTEGER NOT NULL DEFAULT 0,
    failingSinceMs INTEGER,              -- of the first failed attempt since the last success
    meanMs INTEGER NOT NULL DEFAULT 0,   -- moving mean of its attempts; 0 for any that is short
    health TEXT AS (CASE
      WHEN failingSinceMs IS NOT NULL THEN 'failing' WHEN NOT hasSucceeded THEN 'unknown'
      WHEN meanMs > 1000 THEN 'slow' ELSE 'healthy' END) VIRTUAL,
    dueAtMs INTEGER,                     -- of its turn to be sent; none without pending work
    createdAtMs INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX subscriptions_by_principal ON subscriptions (principal, event, endpoint)
    WHERE status <> 'deleted';
  CREATE INDEX subscriptions_by_event ON subscriptions (event, seq)
    WHERE status IN ('active', 'paused');
  CREATE INDEX subscriptions_by_grant ON subscriptions (grantId) WHERE grantId IS NOT NULL;
  CREATE INDEX subscriptions_by_app ON subscriptions (app) WHERE status <> 'deleted';
  CREATE INDEX subscriptions_due ON subscriptions (health, dueAtMs)
    WHERE status = 'active' AND dueAtMs IS NOT NULL;
  CREATE INDEX subscriptions_listed ON subscriptions (id) WHERE status <> 'deleted';
  CREATE INDEX subscriptions_deleted ON subscriptions (seq) WHERE status = 'deleted';
  -- Those that have ended and whose pending deliveries are still to be cancelled.
  CREATE INDEX subscriptions_to_clear ON subscriptions (seq)
    WHERE status IN ('disabled', 'deleted') AND dueAtMs IS NOT NULL;

  -- Ends of all subscriptions of an owner (a user, an app, or 'login' for those made by own login)
  -- that existed then. They take effect at once; the rows are cleared step by step after that.
  CREATE TABLE subscription_endings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    own INTEGER NOT NULL,                -- also those that a user made by own login
    scopes TEXT,                         -- of those alone that were granted any of these
    deletes INTEGER NOT NULL,            -- nobody is left who could make them active again
    reason TEXT NOT NULL
  ) STRICT;
  CREATE INDEX subscription_endings_by_owner ON subscription_endings (owner, seq);

  -- What a subscriber to an event must be allowed, as the process that started last declares it.
  CREATE TABLE event_scopes (
    name TEXT PRIMARY KEY,
    scopes TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE events (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    subject TEXT,                        -- deliver to this principal alone
    scopes TEXT NOT NULL,                -- what a subscriber must be allowed
    status TEXT NOT NULL CHECK (status IN ('pending', 'distributed')),
    lastSubscription INTEGER NOT NULL,   -- that existed at dispatch
    fannedOut INTEGER NOT NULL DEFAULT 0, -- the last subscription that has its delivery
    createdAtMs INTEGER NOT NULL,
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
    dueAtMs INTEGER NOT NULL,            -- not before; a claim moves it to the end of its lease
    claim TEXT,                          -- whose lease that is: the name of a process
    finishedAtMs INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX deliveries_due ON deliveries (subscription, dueAtMs) WHERE status = 'pending';
  CREATE INDEX deliveries_by_subscription ON deliveries (subscription, status, id);
  CREATE INDEX deliveries_by_status ON deliveries (status, id);
  CREATE INDEX deliveries_claimed ON deliveries (claim, dueAtMs) WHERE claim IS NOT NULL;

  CREATE TABLE attempts (
    delivery TEXT NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    startedAtMs INTEGER NOT NULL,
    attempt INTEGER NOT NULL,            -- 1 … 4, as sent in gatepost-attempt
    status INTEGER,                      -- of the response; none where there was none
    error TEXT,                          -- the kind of failure; none after a response
    durationMs INTEGER NOT NULL,
    snippet TEXT,                        -- the response's first bytes, for the backend alone
    PRIMARY KEY (delivery, startedAtMs, attempt)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE cronjobs (
    name TEXT PRIMARY KEY,
    nextAtMs INTEGER NOT NULL,
    leaseUntilMs INTEGER NOT NULL DEFAULT 0, -- while a process runs it
    claim TEXT,                          -- whose lease that is: the name of a process
    lastAtMs INTEGER,
    lastDurationMs INTEGER,
    lastError TEXT
  ) STRICT, WITHOUT ROWID;

  -- Counts how often the clock has been set, so that one process shifts what waits, and no other.
  CREATE TABLE clock_steps (count INTEGER NOT NULL) STRICT;
  INSERT INTO clock_steps (count) VALUES (0);

  CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    app TEXT,                            -- client_id of the app that acted for the actor, if any
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    address TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX audit_by_actor ON audit (actor, id);
  CREATE INDEX audit_by_action ON audit (action, id);
  CREATE INDEX audit_by_target ON audit (target, id);
`;
