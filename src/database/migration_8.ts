/** What tokens are issued for beside this service (RFC 8707). */
export const RESOURCES = `
  CREATE TABLE resources (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,                   -- the aud of its tokens
    scopes TEXT NOT NULL,
    createdAtMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX resources_by_url ON resources (rtrim(url, '/'));
`;

/** Tokens for other resources. */
export const MIGRATION_8 = `
  ${RESOURCES}
  ALTER TABLE grants ADD COLUMN resource TEXT;
  ALTER TABLE codes ADD COLUMN resource TEXT;
`;
