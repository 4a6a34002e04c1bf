import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createLogger,
  describeFields,
  LOG_LEVELS,
  type LogFields,
  type LogLevel,
} from "../../src/base/log.ts";

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function collect(options: { level?: LogLevel; pretty?: boolean } = {}) {
  const writes: string[] = [];
  const log = createLogger({
    level: "debug",
    now: () => NOW_MS,
    write: (lines) => void writes.push(lines),
    ...options,
  });
  const lines = () => {
    log.flush();
    return writes.join("").split("\n").slice(0, -1);
  };
  return { log, writes, lines };
}

function logged(fields: LogFields, msg = "hello"): Record<string, unknown> {
  const { log, lines } = collect();
  log.info(msg, fields);
  const [line, ...rest] = lines();
  assert.deepEqual(rest, []);
  return JSON.parse(line ?? "");
}

test("createLogger() writes one JSON object a line with time, level, msg and fields", () => {
  const { log, lines } = collect();
  log.info("listening", { url: "http://127.0.0.1:8080", attempt: 1 });
  assert.deepEqual(lines(), [
    '{"time":"2026-01-02T03:04:05.678Z","level":"info","msg":"listening",' +
      '"url":"http://127.0.0.1:8080","attempt":1}',
  ]);
});

test("createLogger() leaves out lines below its level", () => {
  for (const [index, level] of LOG_LEVELS.entries()) {
    const { log, lines } = collect({ level });
    for (const each of LOG_LEVELS) log[each](each);
    const levels = lines().map((line) => JSON.parse(line).level);
    assert.deepEqual(levels, LOG_LEVELS.slice(index));
  }
});

test("createLogger() writes the lines of 10 ms in one write", ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { log, writes } = collect();
  log.info("one");
  log.warn("two");
  assert.equal(writes.length, 0);
  mock.timers.tick(10);
  assert.equal(writes.length, 1);
  assert.equal(writes[0]?.split("\n").length, 3);
  log.info("three");
  mock.timers.tick(10);
  assert.equal(writes.length, 2);
});

test("createLogger() lets no field replace the time, the level, the message or the line", () => {
  const fields = { time: 1, level: "error", msg: 3, toJSON: () => "mine", other: 4 };
  assert.deepEqual(logged(fields, "real"),
    { time: "2026-01-02T03:04:05.678Z", level: "info", msg: "real", other: 4 });
});

test("flush() writes at once, and no line is written twice", ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { log, writes } = collect();
  log.info("one");
  log.flush();
  assert.equal(writes.length, 1);
  log.flush();
  mock.timers.tick(10);
  assert.equal(writes.length, 1);
});

test("createLogger() writes before its timer when many lines wait", () => {
  const { log, writes } = collect();
  for (let index = 0; index < 100; index += 1) log.info("x".repeat(10_000));
  assert.ok(writes.length > 1);
});

test("createLogger() writes no control character of a message, a field or a name", () => {
  const evil = 'a\n{"level":"error"}\r\u001b[2J\u007f\u009b\u0085' +
    "\u061c\u2028\u2029\u202e\u2066\u0000z";
  for (const pretty of [false, true]) {
    const { log, lines } = collect({ pretty });
    log.info(evil, { field: evil, [evil]: 1, deep: { [evil]: [evil] } });
    const all = lines();
    assert.equal(all.length, 1);
    assert.doesNotMatch(all[0] ?? "", /[\p{Cc}\u061c\u2028\u2029\u202e\u2066]/u);
  }
});

test("createLogger() escapes text so that JSON.parse() returns it unchanged", () => {
  const evil = "a\n\u001b\u009b\u2028\u202e\ud800z";
  assert.equal(logged({ field: evil }, evil)["field"], evil);
  assert.equal(logged({}, evil)["msg"], evil);
});

test("createLogger() writes an Error in the field `error` with its cause", () => {
  const cause = Object.assign(new TypeError("no route"), { code: "EHOSTUNREACH" });
  const error = new RangeError("failed", { cause });
  const record = logged({ error })["error"];
  assert.deepEqual(record, {
    name: "RangeError",
    message: "failed",
    stack: error.stack,
    cause: { name: "TypeError", message: "no route", code: "EHOSTUNREACH", stack: cause.stack },
  });
});

test("createLogger() writes the errors of an AggregateError, in JSON and for a terminal", () => {
  const refused = Object.assign(new Error("refused by ::1"), { code: "ECONNREFUSED" });
  const error = new AggregateError([refused, new Error("refused by 127.0.0.1"), "a text"]);
  const record = Object(logged({ error: new TypeError("failed", { cause: error }) })["error"]);
  assert.partialDeepStrictEqual(record.cause.errors, [
    { name: "Error", message: "refused by ::1", code: "ECONNREFUSED", stack: refused.stack },
    { message: "refused by 127.0.0.1" },
  ]);
  const { log, lines } = collect({ pretty: true });
  log.error("failed", { error });
  assert.match(lines().join("\n"), /caused by Error: refused by ::1\n.*caused by .* 127\.0\.0\.1/s);
});

test("createLogger() writes a value that is given in place of fields as the field `value`", () => {
  for (const given of ["a text", 5, null, false, ["a", "b"]]) {
    const { log, lines } = collect();
    Reflect.apply(log.error, log, ["failed", given]); // as a JavaScript module may do
    const [line = ""] = lines();
    const { time: _time, ...record } = JSON.parse(line);
    assert.deepEqual(record, { level: "error", msg: "failed", value: given });
  }
});

test("createLogger() writes an Error under any name, in JSON and for a terminal", () => {
  const err = new TypeError("no route");
  const fields = { n: 1, err, reason: new RangeError("too far") };
  const { name, message, stack } = err;
  assert.deepEqual(logged(fields)["err"], { name, message, stack });
  const { log, lines } = collect({ pretty: true });
  log.warn("failed", fields);
  const [first, ...rest] = lines();
  assert.match(first ?? "", /WARN  failed n=1$/);
  assert.match(rest.join("\n"), /^ {4}err: TypeError: no route\n {4}.*\n {4}reason: RangeError: /s);
});

test("describeFields() replaces an Error, so that another thread can get the fields", () => {
  const fields = describeFields({ a: 1, err: new Error("x") });
  assert.deepEqual(structuredClone(fields), fields);
  assert.ok(!(fields["err"] instanceof Error));
});

test("createLogger() writes an error that is its own cause or contains itself", () => {
  const error = new Error("round");
  error.cause = error;
  assert.equal(logged({ error })["msg"], "hello");
  const many = new AggregateError([]);
  many.errors.push(...new Array<Error>(1_000).fill(many));
  assert.ok(JSON.stringify(logged({ error: many })).length < 500_000);
});

test("createLogger() leaves out a value that JSON cannot hold, and nothing else", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const thrower = { toJSON: () => { throw new Error("no"); } };
  const getter = { get value() { throw new Error("no"); } };
  const wrong = Object.defineProperty(new Error("no"), "stack", Object.getOwnPropertyDescriptor(
    { get stack() { throw new Error("no"); } }, "stack") ?? {});
  const each = [{ value: cycle }, { value: 1n }, { value: thrower }, { value: wrong }, getter];
  for (const fields of each) {
    const record = logged(Object.defineProperties(
      { before: "kept", request_id: "r1", err: new Error("kept too"), nothing: undefined },
      Object.getOwnPropertyDescriptors(fields),
    ));
    assert.match(String(record["value"]), /^left out: /);
    assert.deepEqual([record["before"], record["request_id"]], ["kept", "r1"]);
    assert.partialDeepStrictEqual(record["err"], { message: "kept too" });
    const { log, lines } = collect({ pretty: true });
    log.error("still here", Object.defineProperties({ before: "kept" },
      Object.getOwnPropertyDescriptors(fields)));
    assert.match(lines().join(), /still here before=kept value="left out: .*"$/);
  }
});

test("createLogger() writes the line whatever a JavaScript module gives as fields", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const fields of [null, "text", 7, proxy, [1, 2], Object("text"), () => {}]) {
    const { log, lines } = collect();
    Reflect.apply(log.info, log, ["hello", fields]);
    assert.equal(JSON.parse(lines().join())["msg"], "hello");
  }
});

test("createLogger() writes an Error that is given as the message or as the fields", () => {
  const error = new Error("no stock");
  const written = { message: "no stock", stack: error.stack };
  for (const pretty of [false, true]) {
    for (const given of [[error], [error, { order: 7 }], ["failed", error]]) {
      const { log, lines } = collect({ pretty });
      Reflect.apply(log.error, log, given);
      const line = lines().join("\n");
      const msg = typeof given[0] === "string" ? given[0] : "no stock";
      if (!pretty) assert.partialDeepStrictEqual(JSON.parse(line), { msg, error: written });
      else assert.match(line, new RegExp(`ERROR ${msg}.*\\n    Error: no stock`));
    }
  }
});

test("createLogger() writes any value that a JavaScript module gives as the message", () => {
  const wild = { toString() { throw new Error("no"); } };
  const messages = [undefined, null, 7, 1n, Symbol("s"), { a: 1 }, Object.create(null), wild];
  for (const message of messages) {
    for (const pretty of [false, true]) {
      const { log, lines } = collect({ pretty });
      Reflect.apply(log.info, log, [message, { order: 7 }]);
      const [line = ""] = lines();
      if (!pretty) assert.equal(typeof JSON.parse(line).msg, "string", line);
      assert.match(line, /order"?[:=]7/);
    }
  }
});

test("createLogger() writes a readable line for a terminal", () => {
  const { log, lines } = collect({ pretty: true });
  const fields = { delivery: "d1", error: "timeout", note: "two words", no: undefined };
  log.warn("callback failed", fields);
  log.info("done", { ms: 12 });
  assert.deepEqual(lines(), [
    '2026-01-02T03:04:05.678Z WARN  callback failed delivery=d1 error=timeout note="two words"',
    "2026-01-02T03:04:05.678Z INFO  done ms=12",
  ]);
});

test("createLogger() indents a stack so that none of its lines looks like a log line", () => {
  const { log, lines } = collect({ pretty: true });
  const cause = new Error("below\n2026-01-02T03:04:05.678Z INFO  forged too");
  const error = new Error("above\n2026-01-02T03:04:05.678Z INFO  forged", { cause });
  log.error("crash", { error });
  const [first, ...rest] = lines();
  assert.match(first ?? "", /ERROR crash$/);
  assert.ok(rest.some((line) => line.includes("caused by Error: below")));
  for (const line of rest) assert.match(line, /^ {4}/);
});
