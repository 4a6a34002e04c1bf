/** Apps that prove themselves by keys of their own, and apps that must use PKCE. */
export const MIGRATION_7 = `
  ALTER TABLE apps ADD COLUMN requirePkce INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE apps ADD COLUMN jwks TEXT NOT NULL DEFAULT '[]'
    CHECK (jwks = '[]' OR coalesce(secret, oldSecret) IS NULL);
  CREATE TABLE client_assertions (
    hash BLOB PRIMARY KEY,
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX client_assertions_by_end ON client_assertions (untilMs);
`;
