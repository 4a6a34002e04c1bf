import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { INPUTS } from "../../scripts/build.mjs";
import { COMMANDS } from "../../src/cli/commands.ts";
import { VARIABLES } from "../../src/config.ts";
import { writeFolder } from "../helpers/folder.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "scripts/deploy");
const read = (file: string) => readFileSync(join(folder, file), "utf8");

/** The names in the table of metrics, which is generated. */
function documentedMetrics(): string[] {
  const text = readFileSync(join(root, "src/cli/OPERATIONS.md"), "utf8");
  const [, table = ""] = /^<!-- generated: metrics -->([^]*?)<!-- end -->/m.exec(text) ?? [];
  return [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name = ""]) => name);
}

test("alert rules and dashboard name only metrics that exist", () => {
  const known = documentedMetrics();
  for (const file of ["alerts.yml", "alerts_test.yml", "dashboard.json"]) {
    const names = [...read(file).matchAll(/\b(?:gatepost|process|nodejs)_[a-z0-9_]+/g)]
      .map(([name]) => name.replace(/_bucket$/, ""));
    assert.ok(names.length > 3, file);
    for (const name of names) assert.ok(known.includes(name), `${file}: ${name}`);
  }
});

test("every alert says what it means and what to do", () => {
  const rules = read("alerts.yml").split("- alert: ").slice(1);
  assert.ok(rules.length > 10);
  for (const rule of rules) {
    assert.match(rule, /\n {8}annotations:\n {10}summary: .*[^]*\n {10}action: ./, rule);
  }
});

test("the log lines that an alert's action mentions exist in src", () => {
  const source = globSync("src/**/*.ts", { cwd: root })
    .map((file) => readFileSync(join(root, file), "utf8")).join("");
  const actions = read("alerts.yml").replace(/\n\s+/g, " ").split("action: ").slice(1);
  const lines = actions.flatMap((action) => [...(action.split(" - alert: ")[0] ?? "")
    .matchAll(/"([a-z ]+)"/g)]).map(([, line = ""]) => line);
  assert.ok(lines.length > 5);
  for (const line of lines) assert.ok(source.includes(`"${line}`), line);
});

test("the dashboard is JSON, and each panel has a title and queries", () => {
  const { panels } = JSON.parse(read("dashboard.json"));
  assert.ok(panels.length > 10);
  for (const { title, targets } of panels) {
    assert.ok(title.length > 0);
    assert.ok(targets.length > 0 && targets.every(({ expr }: { expr: string }) => expr.length > 0));
  }
});

test("the unit lets the service read the machine's addresses, to see its network", () => {
  assert.match(read("gatepost.service"), /^RestrictAddressFamilies=.*\bAF_NETLINK\b/m);
});

test("the variables of the service and the container exist", () => {
  const known = VARIABLES.map(({ name }) => name);
  const set = [...read("gatepost.env").matchAll(/^(GATEPOST_\w+)=/gm)].map(([, name = ""]) => name);
  assert.ok(set.length > 4);
  for (const name of [...set, ...read("Containerfile").match(/\bGATEPOST_\w+(?==)/g) ?? []]) {
    const isKnown = known.includes(name.replace(/_FILE$/, "")) || name === "GATEPOST_REVISION";
    assert.ok(isKnown, name);
  }
});

test("unit and container start the server by a command that exists", () => {
  const commands = COMMANDS.map(({ words }) => words.join(" "));
  assert.ok(commands.includes("serve"));
  assert.match(read("gatepost.service"), /^ExecStart=\S+node dist\/cli\.js serve --locked$/m);
  const entry = /^ENTRYPOINT \["node", "dist\/cli\.js"\]\nCMD \["serve", "--locked"\]$/m;
  assert.match(read("Containerfile"), entry);
});

test("the command line works from cron, whose PATH has no sbin folder", async (t) => {
  const folder = await writeFolder(t, { "gatepost.env": "" });
  const script = read("gatepost").replace(/\/(etc|opt)\/gatepost/g, folder);
  const env = { PATH: "/usr/bin:/bin" };
  const { stderr } = spawnSync("/bin/sh", ["-c", script], { env, encoding: "utf8" });
  assert.match(stderr, /^runuser: /); // it was found, and lacks a user, a right or the program
});

test("the container copies every input of the build", () => {
  const [build = ""] = read("Containerfile").split(/^FROM node:26-slim$/m);
  const copied = [...build.matchAll(/^COPY (.*) \S+$/gm)]
    .flatMap(([, names = ""]) => names.split(" "));
  assert.deepEqual(INPUTS.filter((input) => !copied.includes(input)), []);
});

test("the container's user can read what it starts, whatever the file modes of the clone", () => {
  const [build = ""] = read("Containerfile").match(/^RUN .*node scripts\/build\.mjs.*$/m) ?? [];
  assert.match(build, / && chmod -R a\+rX package\.json dist$/);
});

test("the image is built in the format that keeps its health check", () => {
  for (const file of ["Containerfile", "README.md"]) {
    const commands = read(file).match(/podman build.*/g) ?? [];
    assert.ok(commands.length > 0 && commands.every((each) => each.includes("--format docker")));
  }
});

test("the README of the folder names every other file in it", () => {
  const readme = read("README.md");
  for (const file of readdirSync(folder)) {
    if (file !== "README.md") assert.ok(readme.includes(`\`${file}\``), file);
  }
});
