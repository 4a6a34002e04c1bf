import type { DatabaseSync } from "node:sqlite";
import { MIGRATION_2 } from "./migration_2.ts";
import { MIGRATION_3 } from "./migration_3.ts";
import { MIGRATION_4 } from "./migration_4.ts";
import { MIGRATION_5 } from "./migration_5.ts";
import { MIGRATION_6 } from "./migration_6.ts";
import { MIGRATION_7 } from "./migration_7.ts";
import { MIGRATION_8 } from "./migration_8.ts";
import { MIGRATION_9 } from "./migration_9.ts";
import { MIGRATION_10 } from "./migration_10.ts";
import { MIGRATION_11 } from "./migration_11.ts";
import { MIGRATION_12 } from "./migration_12.ts";
import { MIGRATION_13 } from "./migration_13.ts";
import { SCHEMA } from "./schema.ts";

/** Marks the file as Gatepost's ("Gate" in ASCII): no other program's database is migrated. */
export const APPLICATION_ID = 0x47617465;

/** None of these is changed any more: there are databases that have seen it. A new one is added. */
const MIGRATIONS: readonly string[] = [
  MIGRATION_2, MIGRATION_3, MIGRATION_4, MIGRATION_5, MIGRATION_6, MIGRATION_7, MIGRATION_8,
  MIGRATION_9, MIGRATION_10, MIGRATION_11, MIGRATION_12, MIGRATION_13,
];

/** The file's `user_version`: 1 in 0.1.0, and one more with each migration. */
export const NEWEST_VERSION = 1 + MIGRATIONS.length;

/** What gives the newest schema to a database of the version; 0 is an empty one. */
export function migrationsFrom(version: number): readonly string[] {
  return version === 0 ? [SCHEMA] : MIGRATIONS.slice(version - 1);
}

/** Gives the newest schema to a database of the version. */
export function applyMigrations(connection: DatabaseSync, version: number): void {
  for (const text of migrationsFrom(version)) connection.exec(text);
}
