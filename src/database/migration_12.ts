/** Deliveries that are sent again by a job that survives a restart. */
export const RESENDS = `
  CREATE TABLE resends (
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
  CREATE INDEX resends_running ON resends (id) WHERE state = 'running';
`;

/** What the lists of the console go by, resends, pauses that end, and owners of apps. */
export const MIGRATION_12 = `
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
  ${RESENDS}
`;
