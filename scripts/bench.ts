/**
 * Measures the built server and, in turn, the limits of the parts that it is made of, and says
 * which targets it reaches. Every server, reference and receiver is a process of its own; this
 * process makes the load.
 *
 *   npm run bench                       everything, about four minutes
 *   npm run bench -- --peers            also what a user would choose instead: npm installs it
 *                                       into a scratch folder; BullMQ needs redis-server
 *   npm run bench -- --cluster          only a node on three rqlited, which npm installs too,
 *                                       compared with a node on a file
 *   npm run bench -- --only NAME        only this case; may be repeated
 *   npm run bench -- --seconds N        how long one turn takes (1.5); --rounds N how many (3)
 *   npm run bench -- --profile FOLDER   Gatepost writes CPU profiles there
 *   npm run --silent bench -- --json    the result as JSON
 *
 * Exit code 1 if the measurement fails; a missed target is a result like any other.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchCase, type Finding, scoreOf, type Stage } from "./bench/bench_case.ts";
import { CALLBACK_CASES } from "./bench/callbacks.ts";
import { CLUSTER_CASES } from "./bench/cluster.ts";
import { DURABLE_BATCH_CASES } from "./bench/durable_batches.ts";
import { FOREIGN_CASES } from "./bench/foreign.ts";
import { GROWTH_CASES } from "./bench/growth.ts";
import { HOSTED_CASES } from "./bench/hosted.ts";
import { NEIGHBOUR_CASES } from "./bench/neighbours.ts";
import { installPeers, peerVersions } from "./bench/peers.ts";
import { readSetting, toChart, toTable } from "./bench/report.ts";
import { START_CASES } from "./bench/start.ts";
import { TOKEN_CASES } from "./bench/tokens.ts";
import { readOptions } from "./read_options.ts";

const CASES: readonly BenchCase[] = [
  ...DURABLE_BATCH_CASES,
  ...TOKEN_CASES,
  ...HOSTED_CASES,
  ...FOREIGN_CASES,
  ...CALLBACK_CASES,
  ...NEIGHBOUR_CASES,
  ...START_CASES,
  ...GROWTH_CASES,
];
const LIMIT_MS = 20 * 60_000;

const { values } = readOptions({
  options: {
    peers: { type: "boolean", default: false },
    cluster: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
    seconds: { type: "string", default: "1.5" },
    rounds: { type: "string", default: "3" },
    profile: { type: "string" },
  },
});

function chosenCases(): readonly BenchCase[] {
  const all = [...CASES, ...CLUSTER_CASES];
  const names = values.only ?? (values.cluster ? CLUSTER_CASES : CASES).map(({ name }) => name);
  const known = all.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  const isTimed = seconds >= 0.1 && seconds <= 60 && Number.isInteger(rounds) && rounds > 0;
  if (unknown.length === 0 && isTimed) {
    return all.filter(({ name }) => names.includes(name));
  }
  process.stderr.write(`Cases are ${known.join(", ")}; a turn takes 0.1 to 60 seconds\n`);
  process.exit(2);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function main(): Promise<void> {
  const chosen = chosenCases();
  const scratch = mkdtempSync(join(tmpdir(), "gatepost-bench-"));
  // Child processes that still run end first, by the exit handlers that they came with.
  const end = (exitCode: number) => {
    process.once("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
    process.exit(exitCode);
  };
  process.once("SIGINT", () => end(130)).once("SIGTERM", () => end(143));
  setTimeout(() => {
    say("It took too long");
    end(1);
  }, LIMIT_MS).unref();

  try {
    const findings = await measure(chosen, scratch);
    const versions = values.peers ? peerVersions(join(scratch, "peers")) : {};
    const setting = readSetting(join(import.meta.dirname, "../dist/cli.js"), versions);
    process.stdout.write(values.json
      ? `${JSON.stringify({ ...setting, findings: findings.map(withVerdict) }, undefined, 2)}\n`
      : toText(setting, findings));
    end(0);
  } catch (error) {
    say(error instanceof Error ? String(error.stack) : String(error));
    end(1);
  }
}

async function measure(chosen: readonly BenchCase[], scratch: string): Promise<Finding[]> {
  let folders = 0;
  const peers = values.peers ? join(scratch, "peers") : undefined;
  if (peers !== undefined) {
    say("installing the peers ...");
    mkdirSync(peers);
    await installPeers(peers);
  }
  const stage: Stage = {
    turnMs: Number(values.seconds) * 1000,
    rounds: Number(values.rounds),
    nodeFlags: values.profile === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`],
    peers,
    newFolder: () => join(scratch, String(folders++)),
    say,
  };
  const findings: Finding[] = [];
  for (const { name, measure: measureCase } of chosen) {
    const startedMs = performance.now();
    say(`${name} ...`);
    findings.push(...await measureCase(stage));
    say(`  ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  }
  return findings;
}

function withVerdict(finding: Finding): Finding & { readonly isMet?: boolean } {
  const score = scoreOf(finding);
  return score === undefined ? finding : { ...finding, isMet: score >= 1 };
}

function toText({ date, machine, versions }: ReturnType<typeof readSetting>, findings: Finding[]) {
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ");
  const turns = `${values.rounds} rounds of ${values.seconds} s each in turn, medians`;
  return `\n${toTable(findings)}\n${toChart(findings)}\n${date}\n${machine}\n${named}\n${turns}\n`;
}

await main();
