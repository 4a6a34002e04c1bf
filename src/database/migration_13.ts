/** The console's codes that wait for their exchange, which end with a session of their user. */
export const CONSOLE_CODES = "CREATE INDEX codes_of_console ON codes (user) WHERE app = 'console';";

/** The password that the first start prints, and the console's codes. */
export const MIGRATION_13 = `
  ALTER TABLE users ADD COLUMN passwordPrinted INTEGER;
  ${CONSOLE_CODES}
`;
