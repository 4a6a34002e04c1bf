import { MIGRATION_1 } from "./migration_1.ts";
import { MIGRATION_2 } from "./migration_2.ts";
import { MIGRATION_3 } from "./migration_3.ts";

/** Marks the file as Gatepost's ("Gate" in ASCII): no other program's database is migrated. */
export const APPLICATION_ID = 0x47617465;

/**
 * The numbered migrations; the file's `user_version` counts those it has seen. One that has been
 * released is never changed, a new one is added.
 *
 * Conventions: columns bear the names of the fields. Times are milliseconds since 1970. Ids sort by
 * the time they were made, so tables keyed by them grow at one end. Lists of names are JSON arrays.
 * A user's or app's `notBeforeMs` ends every grant and session made at that time or before, without
 * touching their rows.
 */
export const MIGRATIONS: readonly string[] = [MIGRATION_1, MIGRATION_2, MIGRATION_3];
