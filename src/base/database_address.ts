import type { Kind } from "./env.ts";

/** Where a database is. */
export interface DatabaseAddress {
  /** Of an SQLite file. */
  readonly path: string;
}

/** How an address is read and written. */
export const DATABASE_ADDRESS: Kind<DatabaseAddress> = {
  parse: (path) =>
    // SQLite takes ":memory:" and "file:…" for something else than a file of that name.
    /^(:memory:|file:)|[/\\]$/i.test(path)
      ? { wrong: "is not the path of a file, such as ./data/gatepost.db" }
      : { value: { path } },
  format: ({ path }) => path,
};
