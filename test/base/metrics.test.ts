import assert from "node:assert/strict";
import { test } from "node:test";
import { counter, createMetrics, histogram } from "../../src/base/metrics.ts";
import { parseMetrics } from "../helpers/metrics_text.ts";

test("a counter counts each combination of labels separately", async () => {
  const metrics = createMetrics({ a_total: counter("A.", "x", "y") });
  metrics.count("a_total", ["1", "2"]);
  metrics.count("a_total", ["1", "2"], 3);
  metrics.count("a_total", ["2", "1"], 0);
  assert.equal(
    await metrics.format({}),
    '# HELP a_total A.\n# TYPE a_total counter\na_total{x="1",y="2"} 4\na_total{x="2",y="1"} 0\n',
  );
});

test("a counter without labels begins with 0", async () => {
  const metrics = createMetrics({ a_total: counter("A.") });
  assert.match(await metrics.format({}), /^a_total 0\n$/m);
});

test("a counter with labels is left out until it counts", async () => {
  const metrics = createMetrics({ a_total: counter("A.", "x") });
  assert.equal(await metrics.format({}), "");
});

test("a counter's initial series begin with 0", async () => {
  const metrics = createMetrics({ a_total: { ...counter("A.", "x"), initial: [["1"], ["2"]] } });
  assert.match(await metrics.format({}), /^a_total\{x="1"\} 0\na_total\{x="2"\} 0\n$/m);
});

test("a histogram's bucket counts the amounts up to its bound, the bound included", async () => {
  const metrics = createMetrics({ a: histogram("A.", [0.1, 1], "x") });
  for (const amount of [0.1, 0.5, 1, 7]) metrics.observe("a", ["v"], amount);
  assert.deepEqual((await metrics.format({})).split("\n").slice(2), [
    'a_bucket{x="v",le="0.1"} 1',
    'a_bucket{x="v",le="1"} 3',
    'a_bucket{x="v",le="+Inf"} 4',
    'a_sum{x="v"} 8.6',
    'a_count{x="v"} 4',
    "",
  ]);
});

test("a histogram without labels begins with sum and count 0", async () => {
  const metrics = createMetrics({ a: histogram("A.", [1]) });
  assert.match(await metrics.format({}), /^a_sum 0\na_count 0\n$/m);
});

const gauge = { type: "gauge", help: "", labels: [] } as const;

test("a metric's reading may be a number, a promise, or values with labels", async () => {
  const metrics = createMetrics({
    now: { ...gauge, read: () => 1.5 },
    later: { ...gauge, labels: ["a"], read: () => Promise.resolve([[["b"], 2]] as const) },
    endless: { ...gauge, read: () => [[[], Infinity], [[], NaN]] as const },
    given: { ...gauge, read: ({ value }: { value: number }) => value },
  });
  const text = await metrics.format({ value: 7 });
  for (const line of ["now 1.5", 'later{a="b"} 2', "endless +Inf", "endless NaN", "given 7"]) {
    assert.ok(text.split("\n").includes(line), line);
  }
});

test("a metric that cannot be read is left out, and the others are written", async () => {
  const metrics = createMetrics({
    bad: { ...gauge, read: () => Promise.reject<number>(new Error("no")) },
    worse: {
      ...gauge,
      read: () => {
        throw new Error("no");
      },
    },
    good: { ...gauge, read: () => 1 },
  });
  assert.equal(await metrics.format({}), "# HELP good \n# TYPE good gauge\ngood 1\n");
});

test("labels and help are escaped as the format asks", async () => {
  const metrics = createMetrics({ a_total: counter('b\\ "\n', "x") });
  metrics.count("a_total", ['q"\\\n\u00fc']);
  const text = await metrics.format({});
  assert.match(text, /^# HELP a_total b\\\\ "\\n$/m);
  assert.match(text, /^a_total\{x="q\\"\\\\\\n\u00fc"\} 1$/m);
  const [family] = parseMetrics(text);
  assert.deepEqual(family?.samples[0]?.labels, { x: 'q"\\\n\u00fc' });
});

test("past the limit of series new ones are counted together as other", async () => {
  const metrics = createMetrics({ a_total: counter("A.", "x", "y") });
  for (let count = 0; count < 6000; count++) metrics.count("a_total", [`v${count}`, "z"]);
  metrics.count("a_total", ["v0", "z"]);
  const [family] = parseMetrics(await metrics.format({}));
  assert.equal(family?.samples.length, 5001);
  const find = (x: string) => family?.samples.find(({ labels }) => labels["x"] === x);
  assert.equal(find("other")?.value, 1000);
  assert.equal(find("v0")?.value, 2);
});

test("past the limit of series a label with the value other adds no series", async () => {
  const metrics = createMetrics({ a_total: counter("A.", "x", "y") });
  for (let count = 0; count < 6000; count++) metrics.count("a_total", ["other", `v${count}`]);
  const [family] = parseMetrics(await metrics.format({}));
  assert.equal(family?.samples.length, 5001);
});

test("counting a request takes less than 10 µs", () => {
  const bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];
  const metrics = createMetrics({
    a_total: counter("", "method", "route", "status"),
    b: histogram("", bounds, "method", "route"),
  });
  const count = (times: number): number => {
    const startMs = performance.now();
    for (let index = 0; index < times; index++) {
      const route = index % 2 === 0 ? "/consumer/login" : "/orders/:id";
      metrics.count("a_total", ["POST", route, String(200 + index % 3)]);
      metrics.observe("b", ["POST", route], index % 20 / 1000);
    }
    return (performance.now() - startMs) * 1000 / times;
  };
  count(50_000);
  const microseconds = Math.min(count(50_000), count(50_000), count(50_000));
  assert.ok(microseconds < 10, `${microseconds} µs`);
});
