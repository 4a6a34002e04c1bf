/**
 * Checks the layers of src: which folder may import which, which folder may use which part of
 * Node, where the network, SQL, HTML and the environment may appear, that no function is written
 * where a member is assigned, and that none has many mutable variables. In src, test and scripts
 * there are no import cycles, and no line is wider than 100 columns.
 *
 *   node scripts/check_layers.ts                  one line for each error; exit 1 if there is one
 *   node scripts/check_layers.ts FOLDER           the same for another tree instead of src
 *   node scripts/check_layers.ts [FOLDER] --list  the `node:` modules that each folder uses
 */
import { globSync, readFileSync } from "node:fs";
import { basename, join, posix } from "node:path";
import {
  COMPUTED_IMPORT_IN,
  ENVIRONMENT_IN,
  FETCH_IN,
  HTML_IN,
  LISTEN_IN,
  MAY_IMPORT,
  MAY_TOUCH,
  SQL_IN,
  TYPES_ONLY,
} from "./layers.ts";
import { findImports, scanSource, type Import, type Token } from "./source_scan.ts";

/** The names that turn text into markup or code in a browser. */
const SINKS = new RegExp(
  "^((inner|outer)HTML|insertAdjacentHTML|setHTML(Unsafe)?|parseFromString|srcdoc|eval|Function" +
    "|createContextualFragment|document\\.write(ln)?)$",
);

const FORBIDDEN_NAMES = ["index.ts", "utils.ts", "helpers.ts", "types.ts"];
const MAX_LINES = 300;
const MAX_COLUMNS = 100;
const MAX_VARIABLES = 3;

const SQL =
  /^\s*(SELECT|INSERT (OR \w+ )?INTO|UPDATE|DELETE FROM|PRAGMA|ATTACH|(CREATE|DROP|ALTER) \w+)\s/;
const HTML_TAGS = [
  "html|head|body|title|meta|link|style|script|main|header|footer|section|div|span|p|a|b|i|br|hr",
  "h[1-6]|ul|ol|li|dl|dt|dd|form|label|input|button|select|option|table|tr|td|th|img|svg|strong",
  "em|code|pre",
];
const HTML = new RegExp(`</?(${HTML_TAGS.join("|")})(\\s[^<>]*|/)?>|<!doctype`, "i");

/**
 * Matches a function that is written where a member is assigned. V8 allocates such a closure where
 * it is seldom collected, and all that it captures survives too: made once per request, this cost a
 * tenth of its time. A function that is named first, or written in an object, costs no more than
 * others.
 */
const ASSIGNED_FUNCTION = /^\s*\S+\.#?\w+ \S*= (async )?(function\b|(\w+|\(.*\)(: .*)?) =>)/;

/** One broken rule. */
export type LayerError = { file: string; line: number; rule: string };

type Module = { file: string; unit: string; lines: string[]; tokens: Token[]; imports: Import[] };

/** Returns every broken rule in a tree of modules, in the order of its files. */
export function checkLayers(folder: string): LayerError[] {
  const modules = readModules(folder);
  const files = new Set(modules.map(({ file }) => file));
  return [
    ...modules.flatMap((module) => [
      ...checkShape(module),
      ...checkImports(module, files),
      ...checkFunctions(module),
      ...checkVariables(module),
      ...checkContent(module),
    ]),
    ...checkTree(folder, modules),
  ];
}

/** Returns the errors of a tree that has no layers: import cycles and wide lines. */
export function checkTree(folder: string, modules = readModules(folder)): LayerError[] {
  return [...modules.flatMap(checkWidth), ...checkCycles(modules)];
}

/** Returns the `node:` modules that each folder (or file beside them) uses. */
export function listNodeModules(folder: string): Map<string, string[]> {
  const used = new Map<string, string[]>();
  for (const { file, unit, imports } of readModules(folder)) {
    const group = file.includes("/") ? `${unit}/` : file;
    const names = imports.flatMap(({ specifier }) => nodeModule(specifier) ?? []);
    used.set(group, [...new Set([...(used.get(group) ?? []), ...names])].sort());
  }
  return used;
}

function readModules(folder: string): Module[] {
  const files = globSync("**/*.{ts,mts,cts,js,mjs,cjs}", { cwd: folder }).map(toPosix).sort();
  return files.map((file) => {
    const source = readFileSync(join(folder, file), "utf8");
    const tokens = scanSource(source);
    const lines = source.replace(/\n$/, "").split("\n");
    const unit = file.replace(/[/.].*/, "");
    return { file, unit, lines, tokens, imports: findImports(tokens) };
  });
}

function toPosix(path: string): string {
  return path.replaceAll("\\", "/");
}

/** Checks the name, size and exports of a module, and that the table of layers has its unit. */
function checkShape({ file, unit, lines, tokens }: Module): LayerError[] {
  const errors: LayerError[] = [];
  const name = basename(file);
  if (MAY_IMPORT[unit] === undefined) {
    errors.push({ file, line: 1, rule: `place: ${unit} has no layer in the table` });
  }
  if (FORBIDDEN_NAMES.includes(name)) {
    errors.push({ file, line: 1, rule: `name: ${name} says nothing of what it holds` });
  } else if (!/^[a-z0-9]+(_[a-z0-9]+)*\.ts$/.test(name)) {
    errors.push({ file, line: 1, rule: `name: ${name} is not lower_snake_case.ts` });
  }
  const rule = `size: ${lines.length} lines, more than ${MAX_LINES}`;
  if (lines.length > MAX_LINES) errors.push({ file, line: MAX_LINES + 1, rule });
  tokens.forEach(({ kind, text, line }, index) => {
    if (kind !== "word" || text !== "default") return;
    const before = tokens[index - 1]?.text;
    if (before === "export" || before === "as") errors.push({ file, line, rule: "default export" });
  });
  return errors;
}

function checkWidth({ file, lines }: Module): LayerError[] {
  return lines.flatMap((text, index) => {
    const rule = `width: ${[...text].length} columns, more than ${MAX_COLUMNS}`;
    return [...text].length > MAX_COLUMNS ? [{ file, line: index + 1, rule }] : [];
  });
}

/** A closure with more should be several closures, each of which is read and tested alone. */
function checkVariables({ file, lines }: Module): LayerError[] {
  let held = 0;
  return lines.flatMap((text, index) => {
    if (/^\S/.test(text)) held = 0; // a declaration of the top level begins, or ends
    if (!/^ {2}let /.test(text) || ++held <= MAX_VARIABLES) return [];
    const rule = `variables: ${held} that change in one function, more than ${MAX_VARIABLES}`;
    return [{ file, line: index + 1, rule }];
  });
}

function checkFunctions({ file, unit, lines }: Module): LayerError[] {
  if (unit === "console") return []; // browsers make few of them
  const rule = "function: give it a name before it is assigned";
  return lines.flatMap((text, index) =>
    ASSIGNED_FUNCTION.test(text) ? [{ file, line: index + 1, rule }] : []
  );
}

function checkImports(module: Module, files: Set<string>): LayerError[] {
  return module.imports.flatMap((found) => {
    const rule = findImportError(module, found, files);
    return rule === undefined ? [] : [{ file: module.file, line: found.line, rule }];
  });
}

/** Returns the rule that an import breaks, if any. */
function findImportError(
  { file, unit }: Module,
  { specifier, typeOnly }: Import,
  files: Set<string>,
): string | undefined {
  if (specifier === undefined) {
    return isIn(file, COMPUTED_IMPORT_IN) ? undefined : "import: a computed specifier";
  }
  const builtin = nodeModule(specifier);
  if (builtin !== undefined) {
    if (touchable(file).includes(builtin.replace(/\/.*/, ""))) return undefined;
    return `node: ${file} may not touch node:${builtin}`;
  }
  if (!specifier.startsWith("./") && !specifier.startsWith("../")) {
    return `import: "${specifier}" is neither relative nor node:`;
  }
  const target = resolveImport(file, specifier);
  if (!files.has(target)) return `import: "${specifier}" is no module of this tree`;
  const targetUnit = target.replace(/[/.].*/, "");
  if (targetUnit !== unit && MAY_IMPORT[unit]?.includes(targetUnit) === false) {
    return `layer: ${unit} may not import ${targetUnit} ("${specifier}")`;
  }
  if (targetUnit === "services" && !typeOnly) return "types: services is a type";
  if (unit === "console" && targetUnit !== unit && !typeOnly) {
    return "types: browsers load nothing of the server";
  }
  if (TYPES_ONLY.includes(unit) && !typeOnly) return `types: ${unit} imports types alone`;
  return undefined;
}

function nodeModule(specifier: string | undefined): string | undefined {
  return specifier?.startsWith("node:") ? specifier.slice("node:".length) : undefined;
}

function resolveImport(file: string, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(file), specifier));
}

/** Returns the `node:` modules of the longest entry that fits a file. */
function touchable(file: string): readonly string[] {
  const fitting = Object.entries(MAY_TOUCH).filter(([path]) => file.startsWith(path));
  return fitting.sort(([a], [b]) => b.length - a.length)[0]?.[1] ?? [];
}

/** Checks that the environment, the network, SQL and HTML appear only in their own places. */
function checkContent({ file, tokens }: Module): LayerError[] {
  return tokens.flatMap((token, index) => {
    const rule = findContentError(file, token, (offset) => tokens[index + offset]?.text);
    return rule === undefined ? [] : [{ file, line: token.line, rule }];
  });
}

function findContentError(
  file: string,
  { kind, text }: Token,
  near: (offset: number) => string | undefined,
): string | undefined {
  if (file.startsWith("console/")) {
    // The console shows hostile text: it becomes text nodes and attributes, never markup or code.
    if (kind === "word" && SINKS.test(text)) return `sink: ${text}`;
    // The build removes indentation, in templates too.
    if (kind === "template" && text.includes("\n")) return "template: goes past its line";
  }
  if (kind === "string" || kind === "template") {
    if (SQL.test(text) && !isIn(file, SQL_IN)) return "sql: belongs to database and store";
    if (HTML.test(text) && !isIn(file, HTML_IN)) return "html: belongs to api/pages";
    return undefined;
  }
  if (kind !== "word") return undefined;
  if (/^create(Secure)?Server$/.test(text) && !isIn(file, LISTEN_IN)) {
    return "network: http/node_http.ts alone listens";
  }
  if (near(-1) === "." && near(-2) !== "globalThis") return undefined;
  if (text === "process" && !isIn(file, ENVIRONMENT_IN)) {
    if (near(1) === "." && near(2) === "env") return "environment: process.env outside server, cli";
    // As a value, or by a computed member, `process` would hand on the environment unseen.
    if (near(1) !== "." && near(1) !== ":") return "environment: process as a value";
  }
  if (text === "fetch" && !isIn(file, FETCH_IN)) {
    if (near(1) === "(") return "network: fetch is called by outbound/egress.ts alone";
    if (near(-2) === "globalThis") return "network: the global fetch";
  }
  return undefined;
}

function isIn(file: string, places: readonly string[]): boolean {
  return places.some((place) => file.startsWith(place));
}

/** Returns one error for each import that closes a cycle. */
function checkCycles(modules: readonly Module[]): LayerError[] {
  const byFile = new Map(modules.map((module) => [module.file, module]));
  const errors: LayerError[] = [];
  const done = new Set<string>();

  function visit(file: string, path: string[]): void {
    const module = byFile.get(file);
    if (module === undefined || done.has(file)) return;
    const here = [...path, file];
    for (const { specifier, line, typeOnly } of module.imports) {
      if (!specifier?.startsWith(".") || typeOnly) continue; // types do not exist at run time
      const target = resolveImport(file, specifier);
      const start = here.indexOf(target);
      const circle = [...here.slice(start), target].join(" > ");
      if (start === -1) visit(target, here);
      else errors.push({ file, line, rule: `cycle: ${circle}` });
    }
    done.add(file);
  }

  for (const { file } of modules) visit(file, []);
  return errors;
}

function main(args: string[]): void {
  const root = join(import.meta.dirname, "..");
  const src = args.find((arg) => !arg.startsWith("--")) ?? join(root, "src");
  if (args.includes("--list")) {
    for (const [group, names] of listNodeModules(src)) {
      console.log(`${group.padEnd(12)} ${names.join(", ") || "-"}`);
    }
    return;
  }
  const others = src === join(root, "src") ? [join(root, "test"), join(root, "scripts")] : [];
  for (const tree of [src, ...others]) {
    for (const { file, line, rule } of tree === src ? checkLayers(tree) : checkTree(tree)) {
      console.log(`${join(tree, file)}:${line}  ${rule}`);
      process.exitCode = 1;
    }
  }
}

if (process.argv[1] === import.meta.filename) main(process.argv.slice(2));
