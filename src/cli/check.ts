import { databaseRisks, findRisks, findStoredRisks } from "../app/risks.ts";
import { formatDuration } from "../base/duration.ts";
import type { Members } from "../base/plain_object.ts";
import { createSeal } from "../base/seal.ts";
import { type Config, describeConfig } from "../config.ts";
import type { Hosted } from "../hosting/check.ts";
import { neededScopes, scopeWords } from "../hosting/catalogue.ts";
import { loadEndpoints, LoadError } from "../hosting/load.ts";
import { createEngine, type Engine } from "../database/engine.ts";
import type { DatabaseState } from "../database/judge.ts";
import { countRecords } from "../store/state.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";
import { formatPairs, formatTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export const CHECK_COMMAND: Command = {
  words: ["check"],
  purpose: "Show configuration, database and endpoint modules",
  details: [
    "Shows every setting, the contents of the database, the routes of each module, and every " +
      "error. It changes nothing: the database is neither created nor migrated. Endpoint modules " +
      "are loaded as the server loads them, so their top-level code runs. A secret is shown only " +
      "as set or not set. There is a warning for each risky setting, scope without a description " +
      "for the consent page, path with {name} in place of :name, and event with two schemas. " +
      "Code files that are no modules are listed as passed over, and so are exports that look " +
      "like endpoints but are not served, such as instances of a class.",
    "Exit code 1: the server would not start, because it cannot use the database or load a " +
      "module. Exit code 2: the configuration is wrong. Each error is listed.",
  ],
  examples: ["gatepost check", "GATEPOST_ENDPOINTS=./endpoints gatepost check"],
  async run(context) {
    const { config, terminal } = context;
    const report = await makeReport(config);
    context.print(report, () => formatReport(report, config.endpointsFolder, terminal));
    if (!report.ok) {
      throw new Failure(["the server would not start:", ...report.faults].join("\n  "));
    }
  },
};

/** The empty database that the first start will find. */
const EMPTY_DATABASE = { query: () => Promise.resolve([]) };

async function makeReport(config: Config) {
  const engine = await createEngine(config);
  const state = await engine.judge(createSeal(...config.secretKeys ?? []));
  const database = await describeDatabase(engine, state);
  const isNewest = state.kind === "usable" && state.schemaVersion === state.knownVersion;
  const storedRisks = isNewest ? await engine.look((open) => findStoredRisks(config, open))
    : state.kind === "missing" ? await findStoredRisks(config, EMPTY_DATABASE) : [];
  const faults = state.kind === "unusable" ? [`Database ${engine.address}: ${state.reason}`] : [];
  const hosted = await loadEndpoints(config.endpointsFolder).catch((error: unknown) => {
    if (!(error instanceof LoadError)) throw error;
    faults.push(...error.message.split("\n"));
    return loadEndpoints(undefined);
  });
  return {
    ok: faults.length === 0,
    configuration: Object.fromEntries(
      describeConfig(config).map(({ name, value }) => [name, value]),
    ),
    database,
    endpoints: hosted.endpoints.map(({ method, pattern, scopes, emits, file, exportName }) => ({
      method,
      path: pattern.text,
      public: scopes === undefined,
      scopes: scopes ?? null,
      emits: emits.map(({ name }) => name),
      file,
      export: exportName,
    })),
    cronjobs: hosted.cronjobs.map(({ name, everyMs, file, exportName }) =>
      ({ name, every: formatDuration(everyMs), file, export: exportName })
    ),
    passed_over: hosted.passedOver.map(({ file, exportName }) =>
      ({ file, export: exportName ?? null })
    ),
    warnings: [
      ...findRisks(config), ...databaseRisks(state), ...storedRisks,
      ...undescribedScopes(hosted), ...bracedNames(hosted), ...twoSchemas(hosted),
    ],
    faults,
  };
}

function formatReport(
  report: Awaited<ReturnType<typeof makeReport>>,
  folder: string | undefined,
  terminal: Terminal,
): string {
  const { configuration, database, endpoints, cronjobs, passed_over, warnings } = report;
  const layout = { ...terminal, bold: (text: string) => text };
  const table = (items: readonly Members[], columns: readonly string[]) =>
    items.length === 0 ? "" : formatTable(items, columns, layout, "  ");
  const routes = endpoints.map((endpoint) =>
    ({ ...endpoint, access: (endpoint.scopes?.join(" ") ?? "public") || "any token" })
  );
  const none = folder === undefined ? ": GATEPOST_ENDPOINTS is not set" : ` in ${folder}`;
  const parts = {
    Configuration: formatPairs(Object.entries(configuration)),
    Database: formatPairs(databasePairs(database)),
    Endpoints: table(routes, ["method", "path", "access", "emits*", "file*"]) || `  none${none}`,
    Cronjobs: table(cronjobs, ["name", "every", "file*"]),
    "Passed over": table(passed_over, ["export", "file*"]),
    Warnings: warnings.map((warning) => `  ${warning}`).join("\n"),
  };
  return Object.entries(parts).filter(([, text]) => text !== "")
    .map(([title, text]) => `${terminal.bold(title)}\n${text}`)
    .join("\n\n");
}

/** Warns of scopes without a description, which the consent page can only name. */
function undescribedScopes({ endpoints, scopes }: Hosted): string[] {
  const words = scopeWords(scopes);
  return neededScopes(endpoints).filter((name) => !words.has(name)).sort().map((name) =>
    `Scope ${name} has no description for the consent page; ` +
    `export const scopes = { ${JSON.stringify(name)}: "…" }`
  );
}

/** Warns of parameters in the syntax of OpenAPI, `{id}`, which a URLPattern takes literally. */
function bracedNames({ endpoints }: Hosted): string[] {
  return endpoints.flatMap(({ method, pattern: { text } }) => {
    const [, name] = /\/\{(\w+)\}(?![?*+])/.exec(text) ?? [];
    const literally = `${method} ${text} matches only the text "${name}"`;
    return name === undefined ? [] : [`${literally}; write the parameter as :${name}`];
  });
}

/** Warns of events with several schemas: each endpoint checks its own, the documents show one. */
function twoSchemas({ endpoints }: Hosted): string[] {
  const declared = Map.groupBy(endpoints.flatMap(({ emits }) => emits), ({ name }) => name);
  const schemas = (name: string) => new Set(
    declared.get(name)?.flatMap(({ data }) => data ? [JSON.stringify(data.schema)] : []),
  );
  return declared.keys().filter((name) => schemas(name).size > 1).toArray().sort().map((name) =>
    `Event ${name} is declared with different schemas; the documents show the first`
  );
}

/** Formats the record for people; says what the next start of a server will change. */
function databasePairs(record: Members): [string, unknown][] {
  const { path, state, bytes, reason, schema_version, known_schema_version, ...more } = record;
  if (state !== "usable") {
    const missing = "there is none yet; the server's first start creates it";
    return [["path", path], ["state", reason ?? missing]];
  }
  const next = `; the server's next start migrates it to ${known_schema_version}`;
  return [
    ["path", path],
    ["size", `${bytes} bytes`],
    ["schema version", `${schema_version}${schema_version === known_schema_version ? "" : next}`],
    ...Object.entries(more)
      .map(([name, value]): [string, unknown] => [name.replaceAll("_", " "), value]),
  ];
}

async function describeDatabase(engine: Engine, state: DatabaseState): Promise<Members> {
  const { kind, warnings: _, ...found } = state;
  const base = { path: engine.address, state: kind };
  if (state.kind !== "usable") return { ...base, ...found };
  const { bytes, schemaVersion, knownVersion, isSealed } = state;
  const counts = schemaVersion === knownVersion ? await engine.look(countRecords) : {};
  return {
    ...base,
    bytes,
    schema_version: schemaVersion,
    known_schema_version: knownVersion,
    sealed: isSealed,
    ...counts,
  };
}
