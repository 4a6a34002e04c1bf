import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** A folder of endpoint modules, beside `src` and `dist`, and what is written of it. */
const EXAMPLE = join(import.meta.dirname, "../../example");
const COPIED = ["endpoints/orders.ts", "endpoints/orders.test.ts", "tsconfig.json", "package.json"];

/** What `gatepost init` writes: texts by path. */
export function initFiles(): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(COPIED.map((path) => [path, readFileSync(join(EXAMPLE, path), "utf8")])),
    "gatepost.d.ts": ambientTypes(),
    ".gitignore": "data/\nnode_modules/\n", // data: the database, with its private keys
  };
}

/** What a module of types takes from another, or passes on. */
const RELATIVE = /^(?:import|export) type [^;]* from "\.\/([\w/]+)\.ts";\n/gm;

/** The types for authors as ambient modules, so that an editor needs nothing installed. */
function ambientTypes(): string {
  const extension = extname(import.meta.filename) === ".js" ? ".d.ts" : ".ts";
  const read = (name: string) =>
    readFileSync(join(import.meta.dirname, `../${name}${extension}`), "utf8");
  const root = read("mod");
  const parts = [...root.matchAll(RELATIVE)].map(([, name = ""]) => read(name));
  const types = [root, ...parts].join("").replace(RELATIVE, "");
  const testing = read("mod/testing").replace(/ from "\.\/.*";/g, ' from "gatepost";');
  return [
    "// Written by `gatepost init`. Delete it where the package gatepost itself is installed.",
    `declare module "gatepost" {\n${types}\nexport {};\n}`,
    `declare module "gatepost/testing" {\n${testing}\nexport const call: Call;\n}`,
    "// Until tsconfig.json has types of @types/node, whatever comes from Node is of any type.",
    'declare module "node:*";\n',
  ].join("\n\n");
}
