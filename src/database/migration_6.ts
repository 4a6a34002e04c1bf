/**
 * Ends the access tokens of a grant that ends. Without a time, unlike a user's or an app's end: a
 * grant that has ended makes no more tokens. No process holds a personal one for more than an hour.
 */
export const GRANT_ENDED = `
  CREATE TRIGGER grant_ended AFTER UPDATE OF revokedAtMs ON grants
    WHEN OLD.revokedAtMs IS NULL AND NEW.accessUntilMs > NEW.revokedAtMs
  BEGIN
    UPDATE grants SET accessUntilMs = min(accessUntilMs, revokedAtMs + 3660000)
      WHERE id = NEW.id AND token IS NOT NULL;
    INSERT INTO revocations (target, notBeforeMs, untilMs)
      SELECT id, accessUntilMs, accessUntilMs FROM grants WHERE id = NEW.id;
  END;
`;

/** Personal tokens, and when tokens were used. */
export const MIGRATION_6 = `
  ALTER TABLE grants ADD COLUMN token BLOB;
  ALTER TABLE grants ADD COLUMN name TEXT;
  ALTER TABLE grants ADD COLUMN lastUsedAtMs INTEGER;
  DROP TRIGGER grant_ended;
  ${GRANT_ENDED}
`;
