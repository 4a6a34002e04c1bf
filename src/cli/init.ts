import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { Command, CommandContext } from "./command.ts";
import { Failure } from "./failure.ts";
import { visible } from "./table.ts";

export const INIT_COMMAND: Command = {
  words: ["init"],
  purpose: "Create a folder of endpoint modules",
  arguments: [
    { name: "FOLDER", meaning: "created if missing (default: this folder)", isOptional: true },
  ],
  details: [
    "Writes an example endpoint with its test, the types for an editor and for the compiler " +
      "(gatepost.d.ts: nothing need be installed), tsconfig.json, package.json and .gitignore. " +
      "If one of these files exists already, it writes nothing.",
  ],
  examples: ["gatepost init", "gatepost init shop"],
  run(context) {
    const folder = resolve(context.values.argument("FOLDER"));
    const files = Object.entries(initFiles());
    const names = files.map(([name]) => name);
    const taken = names.filter((name) => lstatSync(join(folder, name), { throwIfNoEntry: false }));
    if (taken.length > 0) {
      throw new Failure(`nothing was written: ${folder} has ${taken.join(", ")} already`);
    }
    for (const [name, text] of files) {
      const path = join(folder, name);
      makeFolders(dirname(path));
      writeFileSync(path, text, { flag: "wx" });
    }
    context.print({ folder, files: names }, () => describe(names, context));
  },
};

/** Not by Node's `recursive`, which loops endlessly below a folder such as /proc. */
function makeFolders(folder: string): void {
  if (existsSync(folder)) return;
  makeFolders(dirname(folder));
  mkdirSync(folder);
}

function describe(names: readonly string[], { host, values }: CommandContext): string {
  const [program = "", script = ""] = host.argv;
  const path = [program, script].map(shellWord).join(" ");
  const name = /\bnode_modules\b/.test(script) ? "npx gatepost" : "gatepost";
  const gatepost = basename(script) === "gatepost" ? name : path;
  const folder = values.argument("FOLDER");
  return [
    ...names.map((name) => `Wrote ${visible(join(folder, name))}`),
    "",
    "Next:",
    ...folder === "" ? [] : [`  cd ${visible(shellWord(folder))}`],
    `  ${gatepost} test`,
    `  ${gatepost} dev`,
  ].join("\n");
}

/** Quotes a text as one word of a shell (POSIX, 2.2.2). */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The example folder of endpoint modules, which the build copies. */
const EXAMPLE = join(
  import.meta.dirname,
  extname(import.meta.filename) === ".js" ? "../example" : "../../scripts/example",
);
const COPIED = ["endpoints/orders.ts", "endpoints/orders.test.ts", "tsconfig.json", "package.json"];

/** Returns the files that `gatepost init` writes, by their paths. */
export function initFiles(): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(COPIED.map((path) => [path, readFileSync(join(EXAMPLE, path), "utf8")])),
    "gatepost.d.ts": ambientTypes(),
    ".gitignore": "data/\nnode_modules/\n", // data: the database, with its private keys
  };
}

/** An import or export of another module of types. */
const RELATIVE = /^(?:import|export) type [^;]* from "\.\/([\w/]+)\.ts";\n/gm;

/** Returns the authors' types as ambient modules, for which an editor needs nothing installed. */
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
    "// Without @types/node in the `types` of tsconfig.json, all of Node's modules are `any`.",
    'declare module "node:*";\n',
  ].join("\n\n");
}
