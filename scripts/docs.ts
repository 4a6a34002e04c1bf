/**
 * Fills the tables of the documents from the code that they describe: everything between
 * `<!-- generated: NAME -->` and `<!-- end -->`.
 *
 *   npm run docs             writes the documents that are stale
 *   npm run docs -- --check  names them; exit 1 if there is one
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ALLOWED, EXPOSED } from "../src/api/cors.ts";
import type { Operation } from "../src/api/operation.ts";
import { toTemplates } from "../src/api/system/openapi_operation.ts";
import { METRICS } from "../src/app/metrics.ts";
import { ownOperations } from "../src/app/operations.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { formatHelp } from "../src/cli/help.ts";
import { VARIABLES } from "../src/config.ts";
import { OWN_EVENTS } from "../src/event/own_events.ts";
import type { Services } from "../src/services.ts";

const REGION = /^(<!-- generated: (.+) -->\n)[^]*?^(<!-- end -->)$/gm;
const MARK = /^<!-- (generated: .+|end) -->$/gm;

/** The paths of all documents, relative to the project's folder. */
export function listDocuments(root: string): string[] {
  return ["README.md", ...globSync("{src,test,scripts}/**/*.md", { cwd: root })].sort();
}

/** Returns a document with its regions filled. Throws if a region is unknown or has no end. */
export function fillRegions(text: string, regions: ReadonlyMap<string, string>): string {
  const marks = [...text.matchAll(MARK)].map(([, mark = ""]) => mark);
  const wrong = marks.find((mark, index) => (mark === "end") !== (index % 2 === 1));
  if (wrong !== undefined || marks.length % 2 === 1) {
    throw new Error(`A table has no beginning or no end near: ${wrong ?? marks.at(-1)}`);
  }
  return text.replace(REGION, (_, start: string, name: string, end: string) => {
    const content = regions.get(name);
    if (content === undefined) throw new Error(`There is no table called ${name}.`);
    return `${start}${content}\n${end}`;
  });
}

/** A Markdown table. */
export function toTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [toLine(headings), `|${"---|".repeat(headings.length)}`, ...rows.map(toLine)].join("\n");
}

function toCode(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(" ");
}

/** Stands for every service: an operation describes itself before it uses a service. */
const NO_SERVICE: unknown = new Proxy(() => {}, {
  get(_target, name) {
    if (name === Symbol.iterator) return [].values.bind([]);
    return name === Symbol.toPrimitive ? () => "" : NO_SERVICE;
  },
  apply: () => NO_SERVICE,
});

/** Returns the content of each region, as Markdown, by the name of the region. */
function readRegions(root: string): ReadonlyMap<string, string> {
  return new Map([
    ["configuration", configurationTable()],
    ["operations", operationTable(ownOperations(NO_SERVICE as Services, []))],
    ["cors", corsTable()],
    ["metrics", metricTable()],
    ["events", eventTable()],
    ["commands", commandList()],
    ["size", sizeOf(root)],
  ]);
}

function configurationTable(): string {
  const rows = VARIABLES.map((variable) => {
    const isValue = variable.default !== "none" && !variable.default.includes(" ");
    const fallback = isValue ? toCode([variable.default]) : variable.default;
    return [toCode([variable.name]), fallback, variable.meaning];
  });
  return toTable(["variable", "default", "meaning"], rows);
}

function operationTable(operations: readonly Operation[]): string {
  const rows = operations.map(({ method, path, access, query = {}, summary }) => {
    const [template] = toTemplates(path);
    const scopes = access === "public" ? "–" : toCode(access) || "any token";
    const filters = Object.keys(query).filter((name) => name !== "limit" && name !== "cursor");
    return [toCode([`${method} ${template}`]), scopes, summary, toCode(filters)];
  });
  return toTable(["operation", "scope", "what it does", "query"], rows);
}

function metricTable(): string {
  const rows = Object.entries(METRICS).map(([name, { type, help, labels }]) =>
    [toCode([name]), type, toCode(labels), help]
  );
  return toTable(["metric", "type", "labels", "meaning"], rows);
}

function corsTable(): string {
  const rows = [["send", toCode(ALLOWED)], ["read", toCode(EXPOSED)]];
  return toTable(["pages may", "headers"], rows);
}

function eventTable(): string {
  const rows = OWN_EVENTS.map(({ name, description }) => [toCode([name]), description]);
  return toTable(["event", "when"], rows);
}

/** The size of src, rounded to the nearest hundred lines. */
function sizeOf(root: string): string {
  const texts = globSync("src/**/*.ts", { cwd: root })
    .map((file) => readFileSync(join(root, file), "utf8").trimEnd().split("\n"));
  const lines = texts.flat();
  const code = lines.filter((line) => !/^\s*(\/\/|\/\*|\*|$)/.test(line));
  const about = (count: number) => (Math.round(count / 100) * 100).toLocaleString("en");
  const longest = Math.max(...texts.map(({ length }) => length));
  return `About ${about(lines.length)} lines in ${texts.length} files of \`src\`, none longer ` +
    `than ${longest}; ${about(code.length)} of them are neither blank nor comment.`;
}

/** What `gatepost --help` prints. */
function commandList(): string {
  const help = formatHelp([], COMMANDS, { columns: undefined, bold: (text) => text });
  return ["```", help, "```"].join("\n");
}

function main(isCheck: boolean): void {
  const root = join(import.meta.dirname, "..");
  const regions = readRegions(root);
  for (const document of listDocuments(root)) {
    const text = readFileSync(join(root, document), "utf8");
    const filled = fillRegions(text, regions);
    if (filled === text) continue;
    console.log(isCheck ? `${document} is stale: run npm run docs` : `${document} is written`);
    if (isCheck) process.exitCode = 1;
    else writeFileSync(join(root, document), filled);
  }
}

if (process.argv[1] === import.meta.filename) main(process.argv.includes("--check"));
