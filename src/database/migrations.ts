import { DatabaseSync } from "node:sqlite";
import { FILL_ADDED, FILL_LAST, RENAME } from "./old_versions.ts";
import { SCHEMA } from "./schema.ts";

/** Marks the file as Gatepost's ("Gate" in ASCII): no other program's database is migrated. */
export const APPLICATION_ID = 0x47617465;

/** A table, index, trigger or column of the schema that a version added. */
interface Part {
  readonly version: number;
  readonly name: string;
  /** The definition, if the part is a column. */
  readonly column?: string;
}

const ADDED = findAdded(SCHEMA.split("\n"));

/** The file's `user_version`: 1 in 0.1.0, and one more with each change of the schema. */
export const NEWEST_VERSION = Math.max(...ADDED.map(({ version }) => version));

function findAdded(lines: readonly string[]): Part[] {
  let name = "";
  return lines.flatMap((line, index) => {
    const created = /^ *CREATE (?:UNIQUE )?\w+ (\w+)/.exec(line)?.[1];
    name = created ?? name;
    const version = Number(/-- (?:.* )?since (\d+)$/.exec(line)?.[1] ?? 0);
    if (version === 0) return [];
    if (created) return { version, name };
    // The following lines of a definition are indented further.
    const end = lines.findIndex((other, at) => at > index && !other.startsWith(" ".repeat(6)));
    const column = lines.slice(index, end).join("\n").replace(/ *--.*$/gm, "").replace(/,$/, "");
    return { version, name, column };
  });
}

/** Returns the SQL that migrates a database from `version` (0: empty) to the newest schema. */
export function migrationsFrom(version: number): readonly string[] {
  const marks =
    [`PRAGMA application_id = ${APPLICATION_ID}`, `PRAGMA user_version = ${NEWEST_VERSION}`];
  if (version === 0) return [SCHEMA, ...marks];
  using newest = new DatabaseSync(":memory:");
  newest.exec(SCHEMA);
  const select = newest.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ?");
  const add = ({ name, column }: Part): string => {
    if (column !== undefined) return `ALTER TABLE ${name} ADD COLUMN ${column}`;
    const { type, sql } = { ...select.get(name) };
    // An index or trigger may replace an older one of the same name.
    return type === "table" ? `${sql}` : `DROP ${type} IF EXISTS ${name}; ${sql}`;
  };
  // In the order of the schema: a part depends only on parts before it.
  const added = ADDED.filter((part) => part.version > version).map(add);
  return [
    ...version === 1 ? [RENAME, ...added, FILL_ADDED] : added,
    ...version < 12 ? [FILL_LAST] : [],
    ...version < 14 ? ["DROP INDEX IF EXISTS grants_by_user"] : [],
    ...marks,
  ];
}

export function applyMigrations(connection: DatabaseSync, version: number): void {
  for (const text of migrationsFrom(version)) connection.exec(text);
}
