/**
 * Fills the tables of the documents from the code that they describe: everything between
 * `<!-- generated: NAME -->` and `<!-- end -->`.
 *
 *   npm run docs             writes the documents that are stale
 *   npm run docs -- --check  names them; exit 1 if there is one
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "../src/cli/commands.ts";
import { formatHelp } from "../src/cli/help.ts";
import { VARIABLES } from "../src/config.ts";

/** What the table of operations shows of each. */
interface OperationRow {
  readonly id: string;
  readonly method: string;
  /** With parameters as the router has them: `/backend/user/:id`. */
  readonly path: string;
  readonly access: "public" | readonly string[];
  /** Query parameters, by their names. */
  readonly query?: Readonly<Record<string, unknown>>;
  readonly summary: string;
}

/** What the table of metrics shows of each. */
interface MetricRow {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** An event that the service itself dispatches. */
interface EventRow {
  readonly name: string;
  readonly description: string;
}

const REGION = /^(<!-- generated: (.+) -->\n)[^]*?^(<!-- end -->)$/gm;
const MARK = /^<!-- (generated: .+|end) -->$/gm;

/** The paths of all documents, relative to the project's folder. */
export function listDocuments(root: string): string[] {
  return ["README.md", ...globSync("{src,test,scripts}/**/*.md", { cwd: root })].sort();
}

/** Returns a document with its regions filled. Throws where one is unknown, or has no end. */
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

// MERGE: these three lists get places of their own. Import each above, as COMMANDS is; then this
// function and the three interfaces go, and readRegions is synchronous.
async function readLists() {
  const load = async (path: string): Promise<Record<string, unknown>> => import(path);
  const { OPERATIONS } = await load("../src/app/operations.ts");
  const { METRICS } = await load("../src/app/metrics.ts");
  const { OWN_EVENTS } = await load("../src/event/event.ts");
  return {
    operations: OPERATIONS as readonly OperationRow[],
    metrics: METRICS as readonly MetricRow[],
    events: OWN_EVENTS as readonly EventRow[],
  };
}

/** What the code says, as Markdown, by the names of the regions. */
async function readRegions(): Promise<ReadonlyMap<string, string>> {
  const { operations, metrics, events } = await readLists();
  return new Map([
    ["configuration", configurationTable()],
    ["operations", operationTable(operations)],
    ["metrics", metricTable(metrics)],
    ["events", eventTable(events)],
    ["commands", commandList()],
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

function operationTable(operations: readonly OperationRow[]): string {
  const rows = operations.map(({ method, path, access, query = {}, summary }) => {
    const template = path.replace(/:(\w+)/g, "{$1}"); // as OpenAPI writes it
    const scopes = access === "public" ? "–" : toCode(access) || "any token";
    const filters = Object.keys(query).filter((name) => name !== "limit" && name !== "cursor");
    return [toCode([`${method} ${template}`]), scopes, summary, toCode(filters)];
  });
  return toTable(["operation", "scope", "what it does", "query"], rows);
}

function metricTable(metrics: readonly MetricRow[]): string {
  const rows = metrics.map(({ name, type, help, labels = [] }) =>
    [toCode([name]), type, toCode(labels), help]
  );
  return toTable(["metric", "type", "labels", "meaning"], rows);
}

function eventTable(events: readonly EventRow[]): string {
  const rows = events.map(({ name, description }) => [toCode([name]), description]);
  return toTable(["event", "when"], rows);
}

/** What `gatepost --help` prints. */
function commandList(): string {
  const help = formatHelp([], COMMANDS, { columns: undefined, bold: (text) => text });
  return ["```", help, "```"].join("\n");
}

async function main(isCheck: boolean): Promise<void> {
  const root = join(import.meta.dirname, "..");
  const regions = await readRegions();
  for (const document of listDocuments(root)) {
    const text = readFileSync(join(root, document), "utf8");
    const filled = fillRegions(text, regions);
    if (filled === text) continue;
    console.log(isCheck ? `${document} is stale: run npm run docs` : `${document} is written`);
    if (isCheck) process.exitCode = 1;
    else writeFileSync(join(root, document), filled);
  }
}

if (process.argv[1] === import.meta.filename) await main(process.argv.includes("--check"));
