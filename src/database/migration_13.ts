/** The password that the first start prints. */
export const MIGRATION_13 = "ALTER TABLE users ADD COLUMN passwordPrinted INTEGER;";
