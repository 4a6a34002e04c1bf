import { DatabaseSync } from "node:sqlite";
import { BEFORE_ADDED, FILL_ADDED, FROM_2 } from "./old_versions.ts";
import { SCHEMA } from "./schema.ts";

/** Marks the file as Gatepost's ("Gate" in ASCII): no other program's database is migrated. */
export const APPLICATION_ID = 0x47617465;

/** The parts of the schema that version 2 added, by their names of today. */
const ADDED_BY_2 = `subscriptions.grantId subscriptions.granted subscriptions.grantedAfter
  subscriptions.meanMs subscriptions_by_grant subscriptions_by_app
  subscription_endings subscription_endings_by_owner event_scopes revocations_by_target
  grants_of_user grants_of_apps grants.previous grants.rotatedAtMs consents.notBeforeMs
  login_failures login_failures_by_account login_failures_by_place login_failures_by_end
  clock_steps cronjobs.claim users.passwordUntilMs audit.app`;

/**
 * Which parts of the schema the versions from 4 on have each added to the one before: tables and
 * their columns, and indexes and triggers, which may take the place of their former selves. After a
 * dash is an index that it took away.
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
  `grants_of_user ended_grants_of_user -grants_by_user`,
];

/** The file's `user_version`: 1 in 0.1.0, and one more with each entry of this list. */
export const NEWEST_VERSION = 3 + ADDED.length;

/** What gives the newest schema to a database of the version; 0 is an empty one. */
export function migrationsFrom(version: number): readonly string[] {
  if (version === 0) return [SCHEMA];
  using newest = new DatabaseSync(":memory:");
  newest.exec(SCHEMA);
  const select = newest.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ?");
  const add = (part: string): string => {
    if (part.startsWith("-")) return `DROP INDEX ${part.slice(1)}`;
    const [name = "", column] = part.split(".");
    const { type, sql } = { ...select.get(name) };
    const former = type === "table" ? "" : `DROP ${type} IF EXISTS ${name};`;
    if (column === undefined) return `${former} ${sql}`;
    const [, definition] = new RegExp(`^ +(${column} .+?),? *(--.*)?$`, "m").exec(`${sql}`) ?? [];
    return `ALTER TABLE ${name} ADD COLUMN ${definition}`;
  };
  const addAll = (parts: string): string[] => parts.split(/\s+/).map(add);
  return [
    ...version === 1 ? [BEFORE_ADDED, ...addAll(ADDED_BY_2), FILL_ADDED] : [],
    ...version === 2 ? [FROM_2] : [],
    ...ADDED.slice(Math.max(version - 3, 0)).flatMap(addAll),
  ];
}

/** Gives the newest schema to a database of the version. */
export function applyMigrations(connection: DatabaseSync, version: number): void {
  for (const text of migrationsFrom(version)) connection.exec(text);
}
