import { DatabaseSync } from "node:sqlite";
import { MIGRATION_2 } from "./migration_2.ts";
import { MIGRATION_3 } from "./migration_3.ts";
import { SCHEMA } from "./schema.ts";

/** Marks the file as Gatepost's ("Gate" in ASCII): no other program's database is migrated. */
export const APPLICATION_ID = 0x47617465;

/** What brings versions 1 and 2 to the next; not changed any more, as there are such databases. */
const MIGRATIONS: readonly string[] = [MIGRATION_2, MIGRATION_3];

/**
 * Which parts of the schema the versions from 4 on have each added to the one before: tables and
 * their columns, indexes, and triggers, of which one may take the place of its former self.
 */
const ADDED = [
  `events.key events_by_key users.rate users_by_rate user_added apps.rate apps_by_rate app_added`,
  `idempotency_keys idempotency_keys_by_end`,
  `grants.token grants.name grants.lastUsedAtMs grant_ended`,
  `apps.requirePkce apps.jwks client_assertions client_assertions_by_end`,
  `device_codes device_codes_by_app device_codes_by_end`,
  `account_changes.issuers issuers principals principals_by_issuer
   issuer_added issuer_changed issuer_deleted principal_changed principal_deleted`,
  `resources resources_by_url apps.metadataUrl apps_by_client_id grants.resource codes.resource`,
  `figures figures_by_time subscriptions_failing muted_problems muted_problems_by_end`,
  `subscriptions.pausedUntilMs subscriptions_by_endpoint subscriptions_to_wake
   events.request events_by_request events.source events.principal
   deliveries.lastStatus deliveries.lastError apps.owner apps_by_owner apps_by_name
   sessions.address sessions.agent sessions.seenAtMs sessions_by_user
   audit_by_address resends resends_running`,
  `users.passwordPrinted codes_of_console`,
];

/** The file's `user_version`: 1 in 0.1.0, and one more with each line of the two lists above. */
export const NEWEST_VERSION = 1 + MIGRATIONS.length + ADDED.length;

/** What gives the newest schema to a database of the version; 0 is an empty one. */
export function migrationsFrom(version: number): readonly string[] {
  if (version === 0) return [SCHEMA];
  using newest = new DatabaseSync(":memory:");
  newest.exec(SCHEMA);
  const select = newest.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ?");
  const add = (part: string): string => {
    const [name = "", column] = part.split(".");
    const { type, sql } = { ...select.get(name) };
    if (type === "trigger") return `DROP TRIGGER IF EXISTS ${name}; ${sql}`;
    if (column === undefined) return `${sql}`;
    const [, definition] = new RegExp(`^ +(${column} .+?),? *(--.*)?$`, "m").exec(`${sql}`) ?? [];
    return `ALTER TABLE ${name} ADD COLUMN ${definition}`;
  };
  const added = ADDED.slice(Math.max(version - 1 - MIGRATIONS.length, 0));
  return [
    ...MIGRATIONS.slice(version - 1),
    ...added.flatMap((parts) => parts.split(/\s+/).map(add)),
  ];
}

/** Gives the newest schema to a database of the version. */
export function applyMigrations(connection: DatabaseSync, version: number): void {
  for (const text of migrationsFrom(version)) connection.exec(text);
}
