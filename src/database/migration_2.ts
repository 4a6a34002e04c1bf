/** What came after 0.1.0. */
export const MIGRATION_2 = `
  -- Subscriptions live by the grant that made them.
  ALTER TABLE subscriptions ADD COLUMN grant_id TEXT; -- of the token that made it or set it active
  -- The scopes of that token; none: by own login, all that its user has; '': what made it has ended.
  ALTER TABLE subscriptions ADD COLUMN granted TEXT;
  -- The last ending that there was then: those that come later may concern it.
  ALTER TABLE subscriptions ADD COLUMN granted_after INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX subscriptions_by_grant ON subscriptions (grant_id) WHERE grant_id IS NOT NULL;
  DROP INDEX subscriptions_by_app;
  CREATE INDEX subscriptions_by_app ON subscriptions (app) WHERE status <> 'deleted';

  -- What was made before lives by the newest grant of its user and app that has not been revoked or
  -- cut off, of those from before it where any is left: one of them made it. The time of a grant is
  -- in the digits of its id. Where all have been revoked, it has ended with them; where the purge
  -- has left none, it may receive what needs no scope of its own.
  CREATE TEMP TABLE known_grants AS
    SELECT g.id, g.app, ifnull(g.user, g.app) AS principal, g.scope, g.made_at,
      g.revoked_at IS NULL AND ifnull(u.cut_at, 0) < g.made_at AND a.cut_at < g.made_at AS stands
    FROM (SELECT *, (SELECT sum(value * (instr('0123456789abcdefghijklmnopqrstuvwxyz',
          substr(grants.id, 2 + key, 1)) - 1)) FROM json_each('[2821109907456, 78364164096,
          2176782336, 60466176, 1679616, 46656, 1296, 36, 1]')) AS made_at FROM grants) g
      JOIN apps a ON a.id = g.app LEFT JOIN users u ON u.id = g.user;
  CREATE INDEX temp.known_grants_of ON known_grants (principal, app, stands, made_at, id);
  UPDATE subscriptions AS s SET grant_id = ifnull(
      (SELECT k.id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
        AND k.stands = 1 AND k.made_at <= s.created_at ORDER BY k.made_at DESC, k.id DESC LIMIT 1),
      (SELECT k.id FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app
        AND k.stands = 1 ORDER BY k.made_at DESC, k.id DESC LIMIT 1)) WHERE app <> 'login';
  UPDATE subscriptions AS s SET granted = CASE
      WHEN grant_id IS NOT NULL THEN (SELECT scope FROM grants WHERE id = grant_id)
      WHEN EXISTS (SELECT 1 FROM known_grants k WHERE k.principal = s.principal AND k.app = s.app)
      THEN '' ELSE 'consumer' END
    WHERE app <> 'login';
  UPDATE subscriptions SET status = 'disabled', disabled_reason = 'grant revoked'
    WHERE granted = '' AND status IN ('active', 'paused');
  DROP TABLE known_grants;

  -- Ends of all subscriptions of an owner (a user, an app, or 'login' for those made by own login)
  -- that existed then. They take effect at once; the rows are cleared step by step after that.
  CREATE TABLE subscription_endings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    own INTEGER NOT NULL,                -- also those that a user made by own login
    scopes TEXT,                         -- JSON: of those alone that were granted any of these
    deletes INTEGER NOT NULL,            -- nobody is left who could make them active again
    reason TEXT NOT NULL
  ) STRICT;
  CREATE INDEX subscription_endings_by_owner ON subscription_endings (owner, seq);

  -- What a subscriber to an event must be allowed, as the process that started last declares it.
  CREATE TABLE event_scopes (
    name TEXT PRIMARY KEY,
    scope TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Grants and their tokens.
  CREATE INDEX revocations_by_target ON revocations (target);

  -- Ends the access tokens of a grant that ends. Without a time, unlike a user's or an app's end: a
  -- grant that has ended makes no more tokens.
  CREATE TRIGGER grant_ended AFTER UPDATE OF revoked_at ON grants
    WHEN OLD.revoked_at IS NULL AND NEW.access_until > NEW.revoked_at
  BEGIN
    INSERT INTO revocations (target, cut_at, until)
      VALUES (NEW.id, NEW.access_until, NEW.access_until);
  END;

  -- A user's grants that have not been ended, of which there are some hundred at most.
  CREATE INDEX grants_of_user ON grants (user, id, app)
    WHERE revoked_at IS NULL AND user IS NOT NULL;
  -- Refresh tokens of apps that act for themselves.
  CREATE INDEX grants_of_apps ON grants (app, id) WHERE user IS NULL AND refresh IS NOT NULL;

  -- Of the refresh token before the one that is good now: what its exchange answered may have been
  -- lost. used_refresh_tokens has those that older versions issued; later ones carry a proof.
  ALTER TABLE grants ADD COLUMN previous BLOB;      -- SHA-256; none where that has been made good
  ALTER TABLE grants ADD COLUMN rotated_at INTEGER;

  -- Ends every grant of the user through the app that was made at that time or before.
  ALTER TABLE consents ADD COLUMN cut_at INTEGER NOT NULL DEFAULT 0;

  -- Logins and accounts.
  -- Tries of a password, for as long as they count as failed: each is one until it is known to be none.
  CREATE TABLE login_failures (
    account BLOB NOT NULL,               -- SHA-256 of what was sent as a name
    place TEXT NOT NULL,                 -- the network, app or device that it came from
    until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX login_failures_by_account ON login_failures (account, place, until);
  CREATE INDEX login_failures_by_place ON login_failures (place, until);
  CREATE INDEX login_failures_by_end ON login_failures (until);
  -- Counts how often the clock has been set, so that one process shifts what waits, and no other.
  CREATE TABLE clock_steps (count INTEGER NOT NULL) STRICT;
  INSERT INTO clock_steps (count) VALUES (0);
  ALTER TABLE cronjobs ADD COLUMN claim TEXT; -- whose lease that is: the name of a process
  -- A one-time password is good until then, and 0 once it was used; none for a lasting one.
  ALTER TABLE users ADD COLUMN password_until INTEGER;

  -- The audit.
  ALTER TABLE audit ADD COLUMN app TEXT; -- client_id of the app that acted for the actor, if one did

  -- Deliveries and jobs.
  -- The moving mean of its attempts' durations; 0 for any that is short.
  ALTER TABLE subscriptions ADD COLUMN mean_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE subscriptions ADD COLUMN health TEXT
    AS (CASE WHEN standing = 'proven' AND mean_ms > 1000 THEN 'slow' ELSE standing END) VIRTUAL;
  DROP INDEX subscriptions_due;
  CREATE INDEX subscriptions_due ON subscriptions (health, due_at)
    WHERE status = 'active' AND due_at IS NOT NULL;
`;
