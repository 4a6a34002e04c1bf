import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runtimeError } from "../../src/base/runtime.ts";
import { runNode } from "../helpers/process.ts";

describe("runtimeError() accepts", () => {
  for (const version of ["26.0.0", "26.10.0", "27.0.0-nightly20260101", "100.1.2"]) {
    test(version, () => assert.equal(runtimeError(version), undefined));
  }
});

describe("runtimeError() names both versions and the remedy in one line for", () => {
  for (const version of ["20.19.0", "25.9.9", "9.0.0", "", "unknown"]) {
    test(JSON.stringify(version), () => {
      const error = runtimeError(version);
      assert.ok(error?.includes(version) && error.includes("26") && error.includes("npm start"));
      assert.doesNotMatch(error ?? "", /\n/);
    });
  }
});

test("runtimeError() in an installed package advises npm install, and not npm start", () => {
  const url = "file:///srv/app/node_modules/gatepost/dist/base/runtime.js";
  const error = runtimeError("20.19.0", url) ?? "";
  assert.match(error, /26 or newer and this is 20\.19\.0: .*npm install node@26[^\n]*$/);
  assert.doesNotMatch(error, /npm start/);
});

test("runProgram() sends the output of console and of node:console to stderr", async () => {
  const url = import.meta.resolve("../../src/base/runtime.ts");
  const program = `const { runProgram } = await import(${JSON.stringify(url)});
    await runProgram(process, async () => {
      const { default: imported, log } = await import("node:console");
      console.log("global");
      imported.info("imported");
      log("named");
      process.stdout.write("stdout");
    });`;
  const { stdout, stderr } = await runNode(["--input-type=module", "--eval", program]);
  assert.deepEqual([stdout, stderr], ["stdout", "global\nimported\nnamed\n"]);
});
