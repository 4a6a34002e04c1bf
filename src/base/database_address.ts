import { isPath, type Kind, type Parsed, quote } from "./env.ts";

/** Where a database is. */
export type DatabaseAddress =
  | { readonly kind: "file"; readonly path: string }
  /** Each node is `HOST:PORT`, as in `127.0.0.1:4001`. */
  | { readonly kind: "rqlite"; readonly nodes: readonly string[]; readonly isTls: boolean };

/** How an address is read and written. */
export const DATABASE_ADDRESS: Kind<DatabaseAddress> = {
  parse(text) {
    const [, tls, list] = /^rqlite(s?):\/\/(.*)$/s.exec(text) ?? [];
    if (list !== undefined) return parseNodes(list, tls === "s");
    // SQLite would not read ":memory:" and "file:…" as names of files. Text that ends in a port is
    // a list of nodes without rqlite://, and may contain a password.
    return /^(:memory:|file:|rqlites?:|\w+:\/\/)|[/\\]$|:\d+$/i.test(text) || !isPath(text)
      ? { wrong: "is not the path of a file, such as ./data/gatepost.db, or rqlite://HOST:PORT,…" }
      : { value: { kind: "file", path: text } };
  },
  format: (address) =>
    address.kind === "file"
      ? address.path
      : `rqlite${address.isTls ? "s" : ""}://${address.nodes.join(",")}`,
};

function parseNodes(list: string, isTls: boolean): Parsed<DatabaseAddress> {
  if (list.includes("@")) {
    return { wrong: "has credentials, which belong in GATEPOST_DATABASE_CREDENTIALS" };
  }
  const nodes = list.toLowerCase().split(",").map((node) => node.trim());
  for (const [index, node] of nodes.entries()) {
    const isNode = /^[^/?#\\]+:[1-9]\d*$/.test(node) && URL.canParse(`http://${node}`);
    if (!isNode) return { wrong: `has the node ${quote(node)}, which is not HOST:PORT alone` };
    if (nodes.indexOf(node) < index) return { wrong: `has the node ${node} twice` };
  }
  return { value: { kind: "rqlite", nodes, isTls } };
}
