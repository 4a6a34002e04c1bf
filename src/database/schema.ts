import { POST_SCHEMA } from "./schema_post.ts";

/**
 * The newest schema, which a new database gets; migrations.ts brings an older one there. It finds
 * in this text what each version added: the first line of such a table, index, trigger or column
 * ends with `-- since` and the version. A part that is added now gets the next version. Users,
 * apps, tokens and common tables are here; events and deliveries are in `POST_SCHEMA`.
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
    passwordUntilMs INTEGER,             -- of a one-time password, 0 once used; else none; since 2
    rate TEXT,                           -- how often it may call, '100/1m'; none: any; since 4
    passwordPrinted INTEGER              -- by the first start: 1, 0 once used; else none; since 13
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX users_by_rate ON users (id, rate) WHERE rate IS NOT NULL; -- since 4

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
    rate TEXT,                           -- as a user's; since 4
    requirePkce INTEGER NOT NULL DEFAULT 0, -- since 7
    jwks TEXT NOT NULL DEFAULT '[]'      -- public keys, in place of a secret; since 7
      CHECK (jwks = '[]' OR coalesce(secret, oldSecret) IS NULL),
    metadataUrl TEXT,                    -- its client_id, where a document describes it; since 10
    -- Who may change its name, addresses and secret.
    owner TEXT REFERENCES users ON DELETE SET NULL -- since 12
  ) STRICT, WITHOUT ROWID;
  -- By what it names itself on the wire.
  CREATE UNIQUE INDEX apps_by_client_id ON apps (ifnull(metadataUrl, id)); -- since 10
  CREATE INDEX apps_by_origin ON apps (origin) WHERE status = 'active';
  CREATE INDEX apps_by_name ON apps (name COLLATE NOCASE); -- since 12
  CREATE INDEX apps_by_owner ON apps (owner, id) WHERE owner IS NOT NULL; -- since 12
  CREATE INDEX apps_by_rate ON apps (id, rate) WHERE rate IS NOT NULL; -- since 4

  -- Counts the changes of apps and users, and new rates, and those of issuers and of principals
  -- that there were: whoever keeps some in memory asks it for news.
  CREATE TABLE account_changes (
    count INTEGER NOT NULL,
    issuers INTEGER NOT NULL DEFAULT 0   -- since 9
  ) STRICT;
  INSERT INTO account_changes (count) VALUES (0);
  ${Object.entries({
    app_added: "INSERT ON apps WHEN NEW.rate IS NOT NULL -- since 4",
    app_changed: "UPDATE ON apps",
    app_deleted: "DELETE ON apps",
    user_added: "INSERT ON users WHEN NEW.rate IS NOT NULL -- since 4",
    user_changed: "UPDATE ON users",
    user_deleted: "DELETE ON users",
  }).map(([name, change]) => countChanges(name, change, "count")).join("")}

  -- Other issuers, and whom their tokens speak for.
  CREATE TABLE issuers (                 -- since 9
    id TEXT PRIMARY KEY,
    issuer TEXT NOT NULL UNIQUE,         -- the iss of its tokens
    audience TEXT,                       -- none: the base URL
    scopes TEXT NOT NULL,
    scopeClaim TEXT NOT NULL,
    jwksUri TEXT NOT NULL,
    jwtType INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    createdAtMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE principals (              -- since 9
    id TEXT PRIMARY KEY,
    issuer TEXT NOT NULL REFERENCES issuers ON DELETE CASCADE,
    subject TEXT NOT NULL,               -- the sub of its tokens
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    createdAtMs INTEGER NOT NULL,
    UNIQUE (issuer, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX principals_by_issuer ON principals (issuer, id); -- since 9
  ${Object.entries({
    issuer_added: "INSERT ON issuers -- since 9",
    issuer_changed: "UPDATE ON issuers -- since 9",
    issuer_deleted: "DELETE ON issuers -- since 9",
    principal_changed: "UPDATE ON principals -- since 9",
    principal_deleted: "DELETE ON principals -- since 9",
  }).map(([name, change]) => countChanges(name, change, "issuers")).join("")}

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
    -- Of the one before, whose response may have been lost; none where that has been made good.
    previous BLOB,                       -- since 2
    rotatedAtMs INTEGER,                 -- since 2
    refreshUntilMs INTEGER NOT NULL,     -- 0 without a refresh token
    accessUntilMs INTEGER NOT NULL,      -- when the last access token expires
    revokedAtMs INTEGER,
    untilMs INTEGER NOT NULL AS (max(refreshUntilMs, accessUntilMs)) VIRTUAL,
    token BLOB,                          -- SHA-256 of a personal token; since 6
    name TEXT,                           -- of a personal token; since 6
    lastUsedAtMs INTEGER,                -- of any access token; stored once a minute; since 6
    resource TEXT                        -- what its tokens are for; none: this service; since 10
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_app ON grants (app, id);
  CREATE INDEX grants_by_end ON grants (untilMs);
  -- A user's grants that have not been ended, of which there are some hundred at most. With the
  -- column that is always NULL they are counted here, and no row is looked at.
  CREATE INDEX grants_of_user ON grants (user, id, app, revokedAtMs) -- since 14
    WHERE revokedAtMs IS NULL AND user IS NOT NULL;
  CREATE INDEX ended_grants_of_user ON grants (user, id) -- since 14
    WHERE revokedAtMs IS NOT NULL AND user IS NOT NULL;
  -- Refresh tokens of apps that act for themselves.
  CREATE INDEX grants_of_apps ON grants (app, id) -- since 2
    WHERE user IS NULL AND refresh IS NOT NULL;
  -- Ends the access tokens of a grant that ends. Without a time, unlike a user's or an app's end: a
  -- grant that has ended makes no more tokens. No process holds a personal one for over an hour.
  CREATE TRIGGER grant_ended AFTER UPDATE OF revokedAtMs ON grants -- since 6
    WHEN OLD.revokedAtMs IS NULL AND NEW.accessUntilMs > NEW.revokedAtMs
  BEGIN
    UPDATE grants SET accessUntilMs = min(accessUntilMs, revokedAtMs + 3660000)
      WHERE id = NEW.id AND token IS NOT NULL;
    INSERT INTO revocations (target, notBeforeMs, untilMs)
      SELECT id, accessUntilMs, accessUntilMs FROM grants WHERE id = NEW.id;
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
    redirectUri TEXT NOT NULL,           -- '' for a device
    challenge TEXT,                      -- PKCE, S256
    untilMs INTEGER NOT NULL,
    resource TEXT                        -- as a grant's; since 10
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX codes_by_end ON codes (untilMs);
  -- The console's codes that wait for their exchange, which end with a session of their user.
  CREATE INDEX codes_of_console ON codes (user) WHERE app = 'console'; -- since 13

  -- Devices that wait for a user; one that is allowed gets a code, by the same hash.
  CREATE TABLE device_codes (            -- since 8
    hash BLOB PRIMARY KEY,
    userCode BLOB NOT NULL UNIQUE,       -- SHA-256 of what the user types
    app TEXT NOT NULL,
    scopes TEXT NOT NULL,                -- asked for by name
    decision TEXT,                       -- 'denied', or the id of the code; none: not decided
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX device_codes_by_app ON device_codes (app, untilMs); -- since 8
  CREATE INDEX device_codes_by_end ON device_codes (untilMs); -- since 8

  -- What apps have proven themselves with, for as long as it might be presented again.
  CREATE TABLE client_assertions (       -- since 7
    hash BLOB PRIMARY KEY,               -- SHA-256 of the app and the assertion's jti
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX client_assertions_by_end ON client_assertions (untilMs); -- since 7

  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,               -- SHA-256 of the cookie's value
    user TEXT NOT NULL,
    createdAtMs INTEGER NOT NULL,
    untilMs INTEGER NOT NULL,
    address TEXT,                        -- of the login; since 12
    agent TEXT,                          -- what the browser says that it is; since 12
    seenAtMs INTEGER                     -- stored once in five minutes; since 12
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_user ON sessions (user); -- since 12
  CREATE INDEX sessions_by_end ON sessions (untilMs);

  CREATE TABLE consents (
    user TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    app TEXT NOT NULL REFERENCES apps ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    notBeforeMs INTEGER NOT NULL DEFAULT 0, -- since 2
    PRIMARY KEY (user, app)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX consents_by_app ON consents (app);

  -- Tries of a password, for as long as they count as failed: each is one until it is known to be
  -- none.
  CREATE TABLE login_failures (          -- since 2
    account BLOB NOT NULL,               -- SHA-256 of what was sent as a name
    place TEXT NOT NULL,                 -- the network, app or device that it came from
    untilMs INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX login_failures_by_account ON login_failures (account, place, untilMs); -- since 2
  CREATE INDEX login_failures_by_place ON login_failures (place, untilMs); -- since 2
  CREATE INDEX login_failures_by_end ON login_failures (untilMs); -- since 2

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
  CREATE INDEX revocations_by_target ON revocations (target); -- since 2

  -- Counts how often the clock has been set, so that one process shifts what waits, and no other.
  CREATE TABLE clock_steps (count INTEGER NOT NULL) STRICT; -- since 2
  INSERT INTO clock_steps (count) VALUES (0);

  CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    app TEXT,                            -- client_id of the app that acted for it, if any; since 2
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    address TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX audit_by_address ON audit (address, id) WHERE address IS NOT NULL; -- since 12
  CREATE INDEX audit_by_actor ON audit (actor, id);
  CREATE INDEX audit_by_action ON audit (action, id);
  CREATE INDEX audit_by_target ON audit (target, id);

  -- What tokens are issued for beside this service (RFC 8707).
  CREATE TABLE resources (               -- since 10
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,                   -- the aud of its tokens
    scopes TEXT NOT NULL,
    createdAtMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX resources_by_url ON resources (rtrim(url, '/')); -- since 10

  ${POST_SCHEMA}
`;

function countChanges(name: string, change: string, counter: string): string {
  return `
  CREATE TRIGGER ${name} AFTER ${change}
  BEGIN
    UPDATE account_changes SET ${counter} = ${counter} + 1;
  END;`;
}
