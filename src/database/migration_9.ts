/** Other issuers, and whom their tokens speak for; who keeps some in memory asks for changes. */
export const MIGRATION_9 = `
  ALTER TABLE account_changes ADD COLUMN issuers INTEGER NOT NULL DEFAULT 0;

  CREATE TABLE issuers (
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

  CREATE TABLE principals (
    id TEXT PRIMARY KEY,
    issuer TEXT NOT NULL REFERENCES issuers ON DELETE CASCADE,
    subject TEXT NOT NULL,               -- the sub of its tokens
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    createdAtMs INTEGER NOT NULL,
    UNIQUE (issuer, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX principals_by_issuer ON principals (issuer, id);
${Object.entries({
  issuer_added: "INSERT ON issuers",
  issuer_changed: "UPDATE ON issuers",
  issuer_deleted: "DELETE ON issuers",
  principal_changed: "UPDATE ON principals",
  principal_deleted: "DELETE ON principals",
}).map(([name, event]) => `
  CREATE TRIGGER ${name} AFTER ${event} BEGIN
    UPDATE account_changes SET issuers = issuers + 1;
  END;`).join("")}
`;
