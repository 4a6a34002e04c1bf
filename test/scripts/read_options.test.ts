import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");

function run(script: string, ...args: string[]) {
  return spawnSync(process.execPath, [join(ROOT, script), ...args], { encoding: "utf8" });
}

for (const script of [
  "scripts/bench.ts",
  "scripts/bench/post.ts",
  "scripts/cluster.ts",
  "scripts/demo.ts",
  "scripts/interop.ts",
  "test/cluster/run.ts",
  "test/crash/outbox.ts",
  "test/crash/run.ts",
]) {
  describe(script, () => {
    test("prints the head of its file with --help", () => {
      const { status, stdout, stderr } = run(script, "--help");
      assert.deepEqual([status, stderr], [0, ""]);
      assert.match(stdout, /^[A-Z][^]*\n {2}(npm run|node) /);
      assert.doesNotMatch(stdout, /^ ?\*/m);
    });

    test("says in one line what is wrong with an option, and points to --help", () => {
      const { status, stdout, stderr } = run(script, "--verbose");
      assert.deepEqual([status, stdout], [2, ""]);
      assert.match(stderr, /^Unknown option '--verbose'[^\n]*\nSee --help\.\n$/);
    });
  });
}
