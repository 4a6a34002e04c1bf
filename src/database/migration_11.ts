/** What is counted by the minute and by the hour, and problems that are not to be shown. */
export const MIGRATION_11 = `
  CREATE TABLE figures (
    stepMs INTEGER NOT NULL,             -- of its interval
    key TEXT NOT NULL,                   -- a subscription's id, or what of the whole service
    atMs INTEGER NOT NULL,               -- when the interval began
    counts TEXT NOT NULL,                -- JSON: see event/figures.ts
    PRIMARY KEY (stepMs, key, atMs)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX figures_by_time ON figures (stepMs, atMs);
  CREATE INDEX subscriptions_failing ON subscriptions (failingSinceMs, id)
    WHERE failingSinceMs IS NOT NULL AND status IN ('active', 'paused');
  CREATE TABLE muted_problems (
    id TEXT PRIMARY KEY,
    untilMs INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX muted_problems_by_end ON muted_problems (untilMs);
`;
