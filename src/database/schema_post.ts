/** The tables of subscriptions, events, deliveries, figures and jobs. */
export const POST_SCHEMA = `
  CREATE TABLE subscriptions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,             -- user id, or client_id of an app acting for itself
    app TEXT NOT NULL,                   -- client_id of the token that made it, or 'login'
    grantId TEXT,                        -- of the token that made it or set it active; since 2
    -- That token's scopes; none: by own login, all that its user has; '[]': what made it has ended.
    granted TEXT,                        -- since 2
    -- The last ending then: later ones may concern it.
    grantedAfter INTEGER NOT NULL DEFAULT 0, -- since 2
    event TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'disabled', 'deleted')),
    disabledReason TEXT,
    secret TEXT NOT NULL,                -- sealed where there is a key
    oldSecret TEXT,                      -- signs beside the new one, until
    oldSecretUntilMs INTEGER,
    hasSucceeded INTEGER NOT NULL DEFAULT 0, -- since 3
    failingSinceMs INTEGER,              -- of the first failed attempt since the last success
    meanMs INTEGER NOT NULL DEFAULT 0,   -- moving mean of its attempts; 0: any short one; since 2
    health TEXT AS (CASE                 -- since 3
      WHEN failingSinceMs IS NOT NULL THEN 'failing' WHEN NOT hasSucceeded THEN 'unknown'
      WHEN meanMs > 1000 THEN 'slow' ELSE 'healthy' END) VIRTUAL,
    dueAtMs INTEGER,                     -- of its turn to be sent; none without pending work
    createdAtMs INTEGER NOT NULL,
    pausedUntilMs INTEGER                -- when a paused one becomes active, if by itself; since 12
  ) STRICT;
  CREATE UNIQUE INDEX subscriptions_by_principal ON subscriptions (principal, event, endpoint)
    WHERE status <> 'deleted';
  CREATE INDEX subscriptions_by_event ON subscriptions (event, seq)
    WHERE status IN ('active', 'paused');
  CREATE INDEX subscriptions_by_grant ON subscriptions (grantId) -- since 2
    WHERE grantId IS NOT NULL;
  CREATE INDEX subscriptions_by_app ON subscriptions (app) WHERE status <> 'deleted'; -- since 2
  CREATE INDEX subscriptions_due ON subscriptions (health, dueAtMs) -- since 3
    WHERE status = 'active' AND dueAtMs IS NOT NULL;
  CREATE INDEX subscriptions_listed ON subscriptions (id) WHERE status <> 'deleted';
  CREATE INDEX subscriptions_deleted ON subscriptions (seq) WHERE status = 'deleted';
  CREATE INDEX subscriptions_by_endpoint ON subscriptions (endpoint COLLATE NOCASE); -- since 12
  CREATE INDEX subscriptions_to_wake ON subscriptions (pausedUntilMs) -- since 12
    WHERE status = 'paused' AND pausedUntilMs IS NOT NULL;
  CREATE INDEX subscriptions_failing ON subscriptions (failingSinceMs, id) -- since 11
    WHERE failingSinceMs IS NOT NULL AND status IN ('active', 'paused');
  -- Those that have ended and whose pending deliveries are still to be cancelled.
  CREATE INDEX subscriptions_to_clear ON subscriptions (seq)
    WHERE status IN ('disabled', 'deleted') AND dueAtMs IS NOT NULL;

  -- Ends of all subscriptions of an owner (a user, an app, or 'login' for those made by own login)
  -- that existed then. They take effect at once; the rows are cleared step by step after that.
  CREATE TABLE subscription_endings (    -- since 2
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    own INTEGER NOT NULL,                -- also those that a user made by own login
    scopes TEXT,                         -- of those alone that were granted any of these
    deletes INTEGER NOT NULL,            -- nobody is left who could make them active again
    reason TEXT NOT NULL
  ) STRICT;
  CREATE INDEX subscription_endings_by_owner ON subscription_endings (owner, seq); -- since 2

  -- What a subscriber to an event must be allowed, as the process that started last declares it.
  CREATE TABLE event_scopes (            -- since 2
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
    key TEXT,                            -- of all with a name and key the first is stored; since 4
    data TEXT NOT NULL,                  -- JSON, sent byte for byte; behind all that is read often
    request TEXT,                        -- X-Request-Id of the request that dispatched it; since 12
    source TEXT,                         -- its route, a cronjob, 'backend' or 'cli'; since 12
    principal TEXT                       -- whose request that was; since 12
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX events_by_key ON events (name, key) WHERE key IS NOT NULL; -- since 4
  CREATE INDEX events_by_request ON events (request, id) WHERE request IS NOT NULL; -- since 12
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
    finishedAtMs INTEGER,
    lastStatus INTEGER,                  -- of the last attempt, as attempts have them; since 12
    lastError TEXT                       -- since 12
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
    claim TEXT,                          -- whose lease that is: the name of a process; since 2
    lastAtMs INTEGER,
    lastDurationMs INTEGER,
    lastError TEXT
  ) STRICT, WITHOUT ROWID;

  -- Deliveries that are sent again by a job that survives a restart.
  CREATE TABLE resends (                 -- since 12
    id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,                 -- who asked for it
    selection TEXT NOT NULL,             -- JSON: what of a list of deliveries is sent again
    state TEXT NOT NULL CHECK (state IN ('running', 'stopped', 'done')),
    reached TEXT NOT NULL,               -- the last delivery that it has come to
    bound TEXT NOT NULL,                 -- sorts behind all that it is to come to
    total INTEGER NOT NULL,              -- that were to be sent when it began
    done INTEGER NOT NULL DEFAULT 0,
    endedAtMs INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX resends_running ON resends (id) WHERE state = 'running'; -- since 12

  -- What was answered to requests with an Idempotency-Key.
  CREATE TABLE idempotency_keys (        -- since 5
    id BLOB PRIMARY KEY,                 -- SHA-256 of the caller, the method, the path and the key
    asked BLOB NOT NULL,                 -- SHA-256 of the query and the body
    attempt TEXT NOT NULL,               -- the newest one, which alone may store its response
    leaseUntilMs INTEGER NOT NULL,       -- then another attempt may begin
    untilMs INTEGER NOT NULL,
    response TEXT NOT NULL DEFAULT ''    -- JSON; empty until it is stored
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_end ON idempotency_keys (untilMs); -- since 5

  -- What is counted by the minute and by the hour, and problems that are not to be shown.
  CREATE TABLE figures (                 -- since 11
    stepMs INTEGER NOT NULL,             -- of its interval
    key TEXT NOT NULL,                   -- a subscription's id, or what of the whole service
    atMs INTEGER NOT NULL,               -- when the interval began
    counts TEXT NOT NULL,                -- JSON: see event/figures.ts
    PRIMARY KEY (stepMs, key, atMs)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX figures_by_time ON figures (stepMs, atMs); -- since 11
  CREATE TABLE muted_problems (          -- since 11
    id TEXT PRIMARY KEY,
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX muted_problems_by_end ON muted_problems (untilMs); -- since 11
`;
