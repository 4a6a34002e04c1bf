import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics, METRICS_TYPE } from "../../src/base/metrics.ts";
import { parseMetrics } from "../helpers/metrics_text.ts";

test("METRICS_TYPE is that of the text format 0.0.4", () => {
  assert.equal(METRICS_TYPE, "text/plain; version=0.0.4; charset=utf-8");
});

test("a counter counts for each combination of labels", async () => {
  const metrics = createMetrics();
  const counter = metrics.counter({ name: "a_total", help: "A.", labels: ["x", "y"] });
  counter.add(["1", "2"]);
  counter.add(["1", "2"], 3);
  counter.add(["2", "1"], 0);
  assert.equal(
    await metrics.format(),
    '# HELP a_total A.\n# TYPE a_total counter\na_total{x="1",y="2"} 4\na_total{x="2",y="1"} 0\n',
  );
});

test("a counter without labels is there from the beginning, with 0", async () => {
  const metrics = createMetrics();
  metrics.counter({ name: "a_total", help: "A." });
  assert.match(await metrics.format(), /^a_total 0\n$/m);
});

test("a counter whose labels nobody has used is left out", async () => {
  const metrics = createMetrics();
  metrics.counter({ name: "a_total", help: "A.", labels: ["x"] });
  assert.equal(await metrics.format(), "");
});

test("a histogram counts up to each bound, bounds included", async () => {
  const metrics = createMetrics();
  const histogram = metrics.histogram({ name: "a", help: "A.", labels: ["x"], bounds: [0.1, 1] });
  for (const amount of [0.1, 0.5, 1, 7]) histogram.observe(["v"], amount);
  assert.deepEqual((await metrics.format()).split("\n").slice(2), [
    'a_bucket{x="v",le="0.1"} 1',
    'a_bucket{x="v",le="1"} 3',
    'a_bucket{x="v",le="+Inf"} 4',
    'a_sum{x="v"} 8.6',
    'a_count{x="v"} 4',
    "",
  ]);
});

test("what is read when asked for may come later, and has labels of its own", async () => {
  const metrics = createMetrics();
  const gauge = { type: "gauge", help: "" } as const;
  metrics.reading({ ...gauge, name: "now" }, () => 1.5);
  metrics.reading({ ...gauge, name: "later" }, () => Promise.resolve([{ labels: { a: "b" }, value: 2 }]));
  metrics.reading({ ...gauge, name: "endless" }, () => [{ value: Infinity }, { value: NaN }]);
  const text = await metrics.format();
  for (const line of ["now 1.5", 'later{a="b"} 2', "endless +Inf", "endless NaN"]) {
    assert.ok(text.split("\n").includes(line), line);
  }
});

test("a reading that fails is left out and keeps nothing else back", async () => {
  const metrics = createMetrics();
  const gauge = { type: "gauge", help: "" } as const;
  metrics.reading({ ...gauge, name: "bad" }, () => Promise.reject(new Error("no")));
  metrics.reading({ ...gauge, name: "worse" }, () => {
    throw new Error("no");
  });
  metrics.reading({ ...gauge, name: "good" }, () => 1);
  assert.equal(await metrics.format(), "# HELP good \n# TYPE good gauge\ngood 1\n");
});

test("labels and help are escaped as the format asks", async () => {
  const metrics = createMetrics();
  const counter = metrics.counter({ name: "a_total", help: 'b\\ "\n', labels: ["x"] });
  counter.add(['q"\\\n\u00fc']);
  const text = await metrics.format();
  assert.match(text, /^# HELP a_total b\\\\ "\\n$/m);
  assert.match(text, /^a_total\{x="q\\"\\\\\\n\u00fc"\} 1$/m);
  const [family] = parseMetrics(text);
  assert.deepEqual(family?.samples[0]?.labels, { x: 'q"\\\n\u00fc' });
});

test("past the limit of series new ones are counted together", async () => {
  const metrics = createMetrics();
  const counter = metrics.counter({ name: "a_total", help: "A.", labels: ["x", "y"] });
  for (let count = 0; count < 6000; count++) counter.add([`v${count}`, "z"]);
  counter.add(["v0", "z"]);
  const [family] = parseMetrics(await metrics.format());
  assert.equal(family?.samples.length, 5001);
  const find = (x: string) => family?.samples.find(({ labels }) => labels["x"] === x);
  assert.equal(find("other")?.value, 1000);
  assert.equal(find("v0")?.value, 2);
});

test("counting a request costs less than a microsecond, and less than ten on a loaded machine", () => {
  const metrics = createMetrics();
  const labels = ["method", "route"];
  const counter = metrics.counter({ name: "a_total", help: "", labels: [...labels, "status"] });
  const bounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];
  const histogram = metrics.histogram({ name: "b", help: "", labels, bounds });
  const count = (times: number): number => {
    const startMs = performance.now();
    for (let index = 0; index < times; index++) {
      const route = index % 2 === 0 ? "/consumer/login" : "/orders/:id";
      counter.add(["POST", route, String(200 + index % 3)]);
      histogram.observe(["POST", route], index % 20 / 1000);
    }
    return (performance.now() - startMs) * 1000 / times;
  };
  count(50_000);
  const microseconds = Math.min(count(50_000), count(50_000), count(50_000));
  assert.ok(microseconds < 10, `${microseconds} µs`);
});
