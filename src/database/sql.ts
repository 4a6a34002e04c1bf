/** What a column may hold. Booleans are 0 and 1, times are milliseconds since 1970. */
export type SqlValue = string | number | null | Uint8Array;

/** A piece of SQL with the values of its parameters: a statement, or a part of one. */
export interface Sql {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** A cache: the latest texts of each template, with the pieces of SQL that each was made of. */
const TEXTS = new WeakMap<TemplateStringsArray, { text: string; pieces: readonly string[] }[]>();
const KEPT = 8;

/** SQL as a tagged template: a value is always bound; a piece of SQL becomes part of the text. */
export function sql(strings: TemplateStringsArray, ...values: readonly (SqlValue | Sql)[]): Sql {
  // The common case: values alone.
  if (!values.some(isPiece)) return { sql: textOf(strings, []), params: values as SqlValue[] };
  const params: SqlValue[] = [];
  const pieces = values.map((value) => {
    if (isPiece(value)) {
      params.push(...value.params);
      return value.sql;
    }
    params.push(value);
    return "?";
  });
  return { sql: textOf(strings, pieces), params };
}

function isPiece(value: SqlValue | Sql): value is Sql {
  return typeof value === "object" && value !== null && "sql" in value;
}

/** Returns the cached text: V8 would copy and hash a new one at each look-up of its statement. */
function textOf(strings: TemplateStringsArray, pieces: readonly string[]): string {
  const texts = TEXTS.getOrInsertComputed(strings, () => []);
  for (const known of texts) {
    let at = 0;
    while (at < pieces.length && known.pieces[at] === pieces[at]) at++;
    if (at === pieces.length && at === known.pieces.length) return known.text;
  }
  const text = strings.reduce((before, rest, at) => `${before}${pieces[at - 1] ?? "?"}${rest}`);
  if (texts.push({ text, pieces }) > KEPT) texts.shift();
  return text;
}

/** Values for `IN`, as one parameter: the text of the statement does not depend on their number. */
export function listOf(values: Iterable<string | number>): Sql {
  return sql`(SELECT value FROM json_each(${JSON.stringify([...values])}))`;
}

/** Joins pieces of SQL with a separator. */
export function joinSql(pieces: readonly Sql[], separator: string): Sql {
  const [first] = pieces;
  if (first && pieces.length === 1) return first;
  return {
    sql: pieces.map(({ sql }) => sql).join(separator),
    params: pieces.flatMap(({ params }) => params),
  };
}

/** ` AND column = value` where there is a value, and nothing where there is none. */
export function andIs(column: Sql, value: SqlValue | undefined): Sql {
  return value === undefined ? sql`` : sql` AND ${column} = ${value}`;
}

/** Returns a fixed word as a literal, for statements whose query plan depends on its value. */
export function sqlText(word: string): Sql {
  return { sql: `'${word.replaceAll("'", "''")}'`, params: [] };
}
