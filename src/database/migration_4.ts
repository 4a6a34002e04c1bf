/** Keys of events, and what limits the requests of users and apps. */
export const MIGRATION_4 = `
  ALTER TABLE events ADD COLUMN key TEXT;
  CREATE UNIQUE INDEX events_by_key ON events (name, key) WHERE key IS NOT NULL;

  ALTER TABLE users ADD COLUMN rate TEXT;
  ALTER TABLE apps ADD COLUMN rate TEXT;
`;
