/**
 * Checks everything: types, layers, documents, the build, every test (those of the service on each
 * engine), and the coverage of `src`.
 *
 *   npm test                          everything
 *   npm test -- test/base/id.test.ts  these files alone, without the checks and the coverage
 *   npm run check                     types, layers and documents alone
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const coverageFolder = join(root, "coverage");
const processCoverageFolder = join(coverageFolder, "tmp");
const failuresFile = join(coverageFolder, "failures.txt");

/**
 * The environment of a test. The settings of the person who runs it are left out, except for those
 * of tests. Node's compile cache is kept: thousands of processes load hundreds of modules each, and
 * most of the cost of a start is to strip their types. V8 then counts the top level of such a
 * module as a whole, and the branches of its functions as usual.
 */
const cleanEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^GATEPOST_(?!TEST_|SEED|FUZZ_)/.test(name)),
  ),
  NODE_COMPILE_CACHE: join(coverageFolder, "modules"),
};

const testRunner = [
  "--test",
  "--test-reporter=spec",
  "--test-timeout=300000",
  `--test-concurrency=${Math.max(2, availableParallelism())}`,
];

// Files that no test loads are counted too, and so is what the child processes of tests have run.
const coverageReport = [
  "node_modules/c8/bin/c8.js",
  "report",
  `--temp-directory=${processCoverageFolder}`,
  "--all",
  "--src=src",
  "--include=src/**",
  "--exclude=src/console/**", // it runs in browsers, whose tests drive it
];
const coverageLimits = ["--check-coverage", "--lines=95", "--branches=90"];

/** The limit of one file; the runner itself limits only each test. */
const FILE_MS = 15 * 60_000;

/** Runs Node on one step; true if it went well. */
async function run(args: string[], extraEnv: Record<string, string> = {}): Promise<boolean> {
  const env = { ...cleanEnv, ...extraEnv };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  const watch = setInterval(endHanging, 10_000, `/proc/${child.pid}/task/${child.pid}/children`);
  const [code] = await once(child, "exit");
  clearInterval(watch);
  return code === 0;
}

let firstSeenMs = new Map<string, number>();

/** Ends each process of a list (Linux has it) that runs for too long, so that its file fails. */
function endHanging(list: string): void {
  const pids = existsSync(list) ? readFileSync(list, "utf8").match(/\d+/g) ?? [] : [];
  firstSeenMs = new Map(pids.map((pid) => [pid, firstSeenMs.get(pid) ?? Date.now()]));
  for (const [pid, sinceMs] of firstSeenMs) {
    if (Date.now() - sinceMs < FILE_MS) continue;
    console.log(`\nProcess ${pid} has run for ${FILE_MS / 60_000} minutes; killing it.`);
    process.kill(Number(pid), "SIGKILL");
  }
}

/** Runs one step under its title; ends the process if the step fails. */
async function step(title: string, succeeds: () => Promise<boolean>): Promise<void> {
  console.log(`\n${title}`);
  if (await succeeds()) return;
  console.log(`\n${title}: failed`);
  process.exit(1);
}

/**
 * Runs every test. A file with a failed test runs once more, alone: some tests wait for real
 * processes, sockets and browsers, and a busy machine can make any of them late. What fails twice
 * fails.
 */
async function runTests(files: string[], env: Record<string, string>): Promise<boolean> {
  const reporters = [
    "--test-reporter-destination=stdout",
    "--test-reporter=./scripts/failed_files.mjs",
    `--test-reporter-destination=${failuresFile}`,
  ];
  if (await run([...testRunner, ...reporters, ...files], env)) return true;
  const failed = readFileSync(failuresFile, "utf8").split("\n").filter((file) => file !== "");
  if (failed.length === 0) return false;
  console.log("\nRunning the files with failed tests again, one at a time");
  return run([...testRunner, "--test-concurrency=1", ...failed], env);
}

/** The tests that are run on rqlite too: of the service, and of several processes. */
function findTestsOfBothEngines(): string[] {
  const others = "test/{delivery/distributor_*,job/shared_cron*}.test.ts";
  return globSync(["test/e2e/*.test.ts", others], { cwd: root }).sort()
    .filter((file) => !readFileSync(join(root, file), "utf8").startsWith("// On SQLite alone: "));
}

async function checks(): Promise<void> {
  await step("Types", () => run(["node_modules/typescript/bin/tsc", "-p", "test/tsconfig.json"]));
  await step("Layers", () => run(["scripts/check_layers.ts"]));
  await step("Documents", () => run(["scripts/docs.ts", "--check"]));
}

async function everything(): Promise<void> {
  rmSync(coverageFolder, { recursive: true, force: true });
  mkdirSync(coverageFolder);
  await checks();
  await step("Build", () => run(["scripts/build.mjs"]));
  const files = globSync("test/**/*.test.ts", { cwd: root }).sort();
  await step("Tests", () => runTests(files, { NODE_V8_COVERAGE: processCoverageFolder }));
  const shared = findTestsOfBothEngines();
  await step("Tests on rqlite", () => runTests(shared, { GATEPOST_TEST_ENGINE: "rqlite" }));
  await step("Coverage", async () => {
    if (await run([...coverageReport, ...coverageLimits, "--reporter=text-summary"])) return true;
    await run([...coverageReport, "--reporter=text"]);
    return false;
  });
}

const names = process.argv.slice(2);
if (names.length === 0) await everything();
else if (names.includes("--checks")) await checks();
else await step("Tests", () => run([...testRunner, ...names]));
