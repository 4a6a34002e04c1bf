/** Devices that wait for a user; one that is allowed gets a code, by the same hash. */
export const MIGRATION_8 = `
  CREATE TABLE device_codes (
    hash BLOB PRIMARY KEY,
    userCode BLOB NOT NULL UNIQUE,       -- SHA-256 of what the user types
    app TEXT NOT NULL,
    scopes TEXT NOT NULL,                -- asked for by name
    decision TEXT,                       -- 'denied', or the id of the code; none: not decided
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX device_codes_by_app ON device_codes (app, untilMs);
  CREATE INDEX device_codes_by_end ON device_codes (untilMs);
`;
