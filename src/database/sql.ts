/** What a column may hold. Booleans are 0 and 1, times are milliseconds since 1970. */
export type SqlValue = string | number | null | Uint8Array;

/** A piece of SQL with the values of its parameters: a statement, or a part of one. */
export interface Sql {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** The last text of each template, and the texts of the pieces that it was made of. */
const lastTexts = new WeakMap<TemplateStringsArray, { text: string; pieces: string[] }>();

/** SQL as a tagged template: a value is always bound; a piece of SQL becomes part of the text. */
export function sql(strings: TemplateStringsArray, ...values: readonly (SqlValue | Sql)[]): Sql {
  const params: SqlValue[] = [];
  const pieces = values.map((value) => {
    if (typeof value === "object" && value !== null && "sql" in value) {
      params.push(...value.params);
      return value.sql;
    }
    params.push(value);
    return "?";
  });
  // Mostly the same as last time: a text made anew would be hashed anew to find its statement.
  let last = lastTexts.get(strings);
  if (!last?.pieces.every((piece, index) => piece === pieces[index])) {
    last = { pieces, text: String.raw({ raw: strings }, ...pieces) };
    lastTexts.set(strings, last);
  }
  return { sql: last.text, params };
}

/** Values for `IN`: one parameter, however many they are, so that the statement stays the same. */
export function listOf(values: Iterable<string | number>): Sql {
  return sql`(SELECT value FROM json_each(${JSON.stringify([...values])}))`;
}

/** Pieces of SQL with something between them. */
export function joinSql(pieces: readonly Sql[], separator: string): Sql {
  return {
    sql: pieces.map(({ sql }) => sql).join(separator),
    params: pieces.flatMap(({ params }) => params),
  };
}

/** ` AND column = value` where there is a value, and nothing where there is none. */
export function andIs(column: Sql, value: SqlValue | undefined): Sql {
  return value === undefined ? sql`` : sql` AND ${column} = ${value}`;
}

/** A SELECT of one status, or of `all` one by one, for an index that has the status first. */
export function ofStatus(select: Sql, status: string | undefined, all: readonly string[]): Sql {
  const statuses = status === undefined ? all : [status];
  if (statuses.length === 0) return select;
  const parts = statuses.map((each) => sql`${select} AND status = ${sqlText(each)}`);
  return joinSql(parts, " UNION ALL ");
}

/** The value as a literal, for fixed words in statements whose plan depends on them. */
export function sqlText(word: string): Sql {
  return { sql: `'${word.replaceAll("'", "''")}'`, params: [] };
}
