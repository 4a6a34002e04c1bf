/**
 * Says whether all is well: types, layers, documents, build, every test, those of the service on
 * each engine, their coverage of `src`.
 *
 *   npm test                          everything
 *   npm test -- test/base/id.test.ts  these files alone, without the checks and the coverage
 *   npm run check                     types, layers and documents alone
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const coverageFolder = join(root, "coverage");
const processCoverageFolder = join(coverageFolder, "tmp");
const failuresFile = join(coverageFolder, "failures.txt");

/**
 * What a test sees: the settings of the person who runs it stay out, except for those of tests.
 * What Node makes of a module is kept: processes by the thousand load hundreds of them each, and
 * taking the types out of these is most of what a start costs. V8 then counts the top level of such
 * a module as a whole, and the branches of its functions as ever.
 */
const cleanEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^GATEPOST_(?!TEST_)/.test(name)),
  ),
  NODE_COMPILE_CACHE: join(coverageFolder, "modules"),
};

// A file ends with its last test: one whose `after` failed leaves servers that would hold it up.
const testRunner = [
  "--test",
  "--test-force-exit",
  "--test-reporter=spec",
  "--test-timeout=300000",
  `--test-concurrency=${Math.max(2, availableParallelism())}`,
];

// Files that no test loads count as well, and so does what processes that tests start have run.
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

/** Runs Node on one step; true if it went well. */
function run(args: string[], extraEnv: Record<string, string> = {}): boolean {
  const env = { ...cleanEnv, ...extraEnv };
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" }).status === 0;
}

/** Runs one step under its title, and ends everything where it fails. */
function step(title: string, succeeds: () => boolean): void {
  console.log(`\n${title}`);
  if (succeeds()) return;
  console.log(`\n${title}: failed`);
  process.exit(1);
}

/**
 * Runs every test; files with a test that failed run once more, alone, because some tests wait for
 * real processes, sockets and browsers, and a machine that is busy with something else can make any
 * of them late. What fails twice fails.
 */
function runTests(files: string[], env: Record<string, string>): boolean {
  const reporters = [
    "--test-reporter-destination=stdout",
    "--test-reporter=./scripts/failed_files.mjs",
    `--test-reporter-destination=${failuresFile}`,
  ];
  if (run([...testRunner, ...reporters, ...files], env)) return true;
  const failed = readFileSync(failuresFile, "utf8").split("\n").filter((file) => file !== "");
  if (failed.length === 0) return false;
  console.log("\nFiles with a test that failed, once more and one at a time");
  return run([...testRunner, "--test-concurrency=1", ...failed], env);
}

/** The tests that are run on rqlite too: of the service, and of several processes. */
function findTestsOfBothEngines(): string[] {
  const others = "test/{delivery/distributor,job/shared_cron}.test.ts";
  return globSync(["test/e2e/*.test.ts", others], { cwd: root }).sort()
    .filter((file) => !readFileSync(join(root, file), "utf8").startsWith("// On SQLite alone: "));
}

function checks(): void {
  step("Types", () => run(["node_modules/typescript/bin/tsc", "-p", "test/tsconfig.json"]));
  step("Layers", () => run(["scripts/check_layers.ts"]));
  step("Documents", () => run(["scripts/docs.ts", "--check"]));
}

function everything(): void {
  rmSync(coverageFolder, { recursive: true, force: true });
  mkdirSync(coverageFolder);
  checks();
  step("Build", () => run(["scripts/build.mjs"]));
  const files = globSync("test/**/*.test.ts", { cwd: root }).sort();
  step("Tests", () => runTests(files, { NODE_V8_COVERAGE: processCoverageFolder }));
  const shared = findTestsOfBothEngines();
  step("Tests on rqlite", () => runTests(shared, { GATEPOST_TEST_ENGINE: "rqlite" }));
  step("Coverage", () => {
    if (run([...coverageReport, ...coverageLimits, "--reporter=text-summary"])) return true;
    run([...coverageReport, "--reporter=text"]);
    return false;
  });
}

const names = process.argv.slice(2);
if (names.length === 0) everything();
else if (names.includes("--checks")) checks();
else step("Tests", () => run([...testRunner, ...names]));
