import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createShortageWatch } from "../../src/delivery/shortage_watch.ts";

describe("createShortageWatch()", () => {
  function open() {
    const warned: unknown[] = [];
    const stage = { elapsedMs: 1_000_000, warned };
    const silent = { debug() {}, info() {}, error() {} };
    const log = { ...silent, warn: (_msg: string, fields: unknown) => void warned.push(fields) };
    return { stage, watch: createShortageWatch(log, () => stage.elapsedMs) };
  }

  test("has nothing to report at first", () => {
    const { watch } = open();
    assert.deepEqual([watch.pauseMs(), watch.current()], [0, undefined]);
  });

  test("pauses for a second and reports the shortage for five", () => {
    const { stage, watch } = open();
    watch.note("EMFILE");
    stage.elapsedMs += 400.4;
    assert.deepEqual([watch.pauseMs(), watch.current()], [600, "EMFILE"]);
    stage.elapsedMs += 599.6;
    assert.deepEqual([watch.pauseMs(), watch.current()], [0, "EMFILE"]);
    stage.elapsedMs += 4_000;
    assert.equal(watch.current(), undefined);
  });

  test("warns once a minute", () => {
    const { stage, watch } = open();
    for (let second = 0; second < 90; second++) {
      watch.note("EMFILE");
      stage.elapsedMs += 1_000;
    }
    assert.deepEqual(stage.warned, [{ code: "EMFILE" }, { code: "EMFILE" }]);
  });
});
