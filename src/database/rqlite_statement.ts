import { ConflictError, UnavailableError } from "./database.ts";
import type { RqliteResult } from "./rqlite_client.ts";
import type { Sql, SqlValue } from "./sql.ts";

/**
 * Encodes a statement as JSON for rqlite: its text and the values of its parameters. Bytes are sent
 * as hexadecimal digits, which `unhex` decodes: older versions accept nothing else.
 */
export function encodeStatement({ sql, params }: Sql): string {
  if (!params.some(isBytes)) return JSON.stringify([sql, ...params]);
  const values = params.map((value) => isBytes(value) ? Buffer.from(value).toString("hex") : value);
  let at = 0;
  const text = sql.replace(/'[^']*'|\?/g, (found) => // a literal, or a parameter
    found === "?" && isBytes(params[at++]) ? "unhex(?)" : found);
  return JSON.stringify([text, ...values]);
}

function isBytes(value: SqlValue | undefined): value is Uint8Array {
  return value instanceof Uint8Array;
}

/** Decodes the rows of a SELECT into objects; a column that is declared BLOB has bytes. */
export function decodeRows<Row>({ columns = [], types = [], values = [] }: RqliteResult): Row[] {
  const isBlob = types.map((type) => type === "blob");
  return values.map((row) =>
    Object.fromEntries(columns.map((name, at) => {
      const value = row[at];
      const isBytes = isBlob[at] && typeof value === "string";
      return [name, isBytes ? Buffer.from(value, "base64") : value];
    })) as Row
  );
}

const IS_CONFLICT = /constraint failed|cannot store \w+ value in/;
const IS_TROUBLE = /disk is full|disk I\/O error|readonly database|database is locked|malformed/;

/** Makes the error for the message of a failed statement. */
export function toError(message: string): Error {
  if (IS_CONFLICT.test(message)) return new ConflictError(message);
  return IS_TROUBLE.test(message) ? new UnavailableError(message) : new Error(message);
}
