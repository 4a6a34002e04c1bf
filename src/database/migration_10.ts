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

/** By what an app names itself on the wire. */
export const CLIENT_IDS = `
  CREATE UNIQUE INDEX apps_by_client_id ON apps (ifnull(metadataUrl, id));
`;

/** Tokens for other resources, and apps that are known by a document. */
export const MIGRATION_10 = `
  ${RESOURCES}
  ALTER TABLE apps ADD COLUMN metadataUrl TEXT;
  ${CLIENT_IDS}
  ALTER TABLE grants ADD COLUMN resource TEXT;
  ALTER TABLE codes ADD COLUMN resource TEXT;
`;
