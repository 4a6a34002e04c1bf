/** What was answered to requests with an Idempotency-Key. */
export const MIGRATION_5 = `
  CREATE TABLE idempotency_keys (
    id BLOB PRIMARY KEY,                 -- SHA-256 of the caller, the method, the path and the key
    asked BLOB NOT NULL,                 -- SHA-256 of the query and the body
    attempt TEXT NOT NULL,               -- the newest one, which alone may store its response
    leaseUntilMs INTEGER NOT NULL,       -- then another attempt may begin
    untilMs INTEGER NOT NULL,
    response TEXT NOT NULL DEFAULT ''    -- JSON; empty until it is stored
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_end ON idempotency_keys (untilMs);
`;
