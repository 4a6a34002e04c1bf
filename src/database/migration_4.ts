/** Keys of events, and what limits the requests of users and apps. */
export const MIGRATION_4 = `
  ALTER TABLE events ADD COLUMN key TEXT;
  CREATE UNIQUE INDEX events_by_key ON events (name, key) WHERE key IS NOT NULL;

  ALTER TABLE users ADD COLUMN rate TEXT;
  ALTER TABLE apps ADD COLUMN rate TEXT;
  CREATE INDEX users_by_rate ON users (id, rate) WHERE rate IS NOT NULL;
  CREATE TRIGGER user_added AFTER INSERT ON users WHEN NEW.rate IS NOT NULL BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
  CREATE INDEX apps_by_rate ON apps (id, rate) WHERE rate IS NOT NULL;
  CREATE TRIGGER app_added AFTER INSERT ON apps WHEN NEW.rate IS NOT NULL BEGIN
    UPDATE account_changes SET count = count + 1;
  END;
`;
