import { MIGRATION_5 } from "./migration_5.ts";
import { GRANT_ENDED } from "./migration_6.ts";
import { MIGRATION_8 } from "./migration_8.ts";
import { MIGRATION_9 } from "./migration_9.ts";
import { CLIENT_IDS, RESOURCES } from "./migration_10.ts";
import { MIGRATION_11 } from "./migration_11.ts";
import { RESENDS } from "./migration_12.ts";
import { CONSOLE_CODES } from "./migration_13.ts";
import { POST_SCHEMA } from "./schema_post.ts";

/**
 * The newest schema, of a database that is new; an older one becomes the same by the migrations.
 * Here are users, apps, tokens and what is common, in `POST_SCHEMA` events and their deliveries.
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
    passwordUntilMs INTEGER,             -- of a one-time password, 0 once it was used; else none
    rate TEXT,                           -- how often it may call, such as '100/1m'; none: any
    passwordPrinted INTEGER              -- by the first start: 1, 0 once it was used; else none
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX users_by_rate ON users (id, rate) WHERE rate IS NOT NULL;

  CREATE TABLE apps (
    id TEXT PRIMARY KEY,                 -- client_id, unless it has a metadataUrl
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
    notBeforeMs INTEGER NOT NULL DEFAULT 0,
    rate TEXT,                           -- as a user's
    requirePkce INTEGER NOT NULL DEFAULT 0,
    jwks TEXT NOT NULL DEFAULT '[]'      -- public keys, in place of a secret
      CHECK (jwks = '[]' OR coalesce(secret, oldSecret) IS NULL),
    metadataUrl TEXT,                    -- its client_id, where a document there describes it
    owner TEXT REFERENCES users ON DELETE SET NULL -- who may change its name and addresses
  ) STRICT, WITHOUT ROWID;
  ${CLIENT_IDS}
  CREATE INDEX apps_by_origin ON apps (origin) WHERE status = 'active';
  CREATE INDEX apps_by_name ON apps (name COLLATE NOCASE);
  CREATE INDEX apps_by_owner ON apps (owner, id) WHERE owner IS NOT NULL;
  CREATE INDEX apps_by_rate ON apps (id, rate) WHERE rate IS NOT NULL;

  -- Counts the changes of apps and users, and new rates: whoever keeps some in memory asks it for
  -- news.
  CREATE TABLE account_changes (count INTEGER NOT NULL) STRICT;
  INSERT INTO account_changes (count) VALUES (0);
  CREATE TRIGGER app_added AFTER INSERT ON apps WHEN NEW.rate IS NOT NULL BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER app_changed AFTER UPDATE ON apps BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER app_deleted AFTER DELETE ON apps BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE TRIGGER user_added AFTER INSERT ON users WHEN NEW.rate IS NOT NULL BEGIN
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
    app TEXT NOT NULL,                   -- client_id, 'login' or 'personal'
    user TEXT,                           -- none where the app acts for itself
    type TEXT NOT NULL,                  -- the grant type that made it, 'login' or 'personal'
    scopes TEXT NOT NULL,
    code BLOB,                           -- SHA-256 of the code that it came from
    refresh BLOB,                        -- SHA-256 of the refresh token that is good now
    previous BLOB,                       -- of the one before, whose response may have been lost;
                                         -- none where that has been made good
    rotatedAtMs INTEGER,
    refreshUntilMs INTEGER NOT NULL,     -- 0 without a refresh token
    accessUntilMs INTEGER NOT NULL,      -- when the last access token expires
    revokedAtMs INTEGER,
    untilMs INTEGER NOT NULL AS (max(refreshUntilMs, accessUntilMs)) VIRTUAL,
    token BLOB,                          -- SHA-256 of a personal token
    name TEXT,                           -- of a personal token
    lastUsedAtMs INTEGER,                -- of any access token; stored once a minute
    resource TEXT                        -- what its tokens are for; none: this service
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_user ON grants (user, id) WHERE user IS NOT NULL;
  CREATE INDEX grants_by_app ON grants (app, id);
  CREATE INDEX grants_by_end ON grants (untilMs);
  -- A user's grants that have not been ended, of which there are some hundred at most.
  CREATE INDEX grants_of_user ON grants (user, id, app)
    WHERE revokedAtMs IS NULL AND user IS NOT NULL;
  -- Refresh tokens of apps that act for themselves.
  CREATE INDEX grants_of_apps ON grants (app, id) WHERE user IS NULL AND refresh IS NOT NULL;
  ${GRANT_ENDED}

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
    redirectUri TEXT NOT NULL,           -- '' for a device
    challenge TEXT,                      -- PKCE, S256
    untilMs INTEGER NOT NULL,
    resource TEXT                        -- as a grant's
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX codes_by_end ON codes (untilMs);
  ${CONSOLE_CODES}

  -- What apps have proven themselves with, for as long as it might be presented again.
  CREATE TABLE client_assertions (
    hash BLOB PRIMARY KEY,               -- SHA-256 of the app and the assertion's jti
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX client_assertions_by_end ON client_assertions (untilMs);

  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,               -- SHA-256 of the cookie's value
    user TEXT NOT NULL,
    createdAtMs INTEGER NOT NULL,
    untilMs INTEGER NOT NULL,
    address TEXT,                        -- of the login
    agent TEXT,                          -- what the browser says that it is
    seenAtMs INTEGER                     -- stored once in five minutes
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_user ON sessions (user);
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
  CREATE INDEX audit_by_address ON audit (address, id) WHERE address IS NOT NULL;
  CREATE INDEX audit_by_actor ON audit (actor, id);
  CREATE INDEX audit_by_action ON audit (action, id);
  CREATE INDEX audit_by_target ON audit (target, id);

  ${RESOURCES}
  ${POST_SCHEMA}
  ${MIGRATION_5}
  ${MIGRATION_8}
  ${MIGRATION_9}
  ${MIGRATION_11}
  ${RESENDS}
`;
