/** A count that only grows, for each combination of its labels' values. */
export interface Counter {
  /** Adds 1, or `by`. The values stand in the order of the label names. */
  add(values: readonly string[], by?: number): void;
}

/** How often, how much in all, and how it is spread, for each combination of its labels' values. */
export interface Histogram {
  observe(values: readonly string[], amount: number): void;
}

/** One value that is looked up when it is asked for, with its labels. */
export interface Reading {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a metric is called and what it means; the labels' names, where it has any. */
export interface MetricOptions {
  /** As Prometheus has it: base unit and, for a counter, `_total` at the end. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** The metrics of a process. */
export interface Metrics {
  counter(options: MetricOptions): Counter;
  /** `bounds` are the upper ends of the buckets, ascending, without infinity. */
  histogram(options: MetricOptions & { readonly bounds: readonly number[] }): Histogram;
  /** A metric that is read when it is asked for; it is left out where reading it fails. */
  reading(
    options: MetricOptions & { readonly type: "gauge" | "counter" },
    read: () => number | readonly Reading[] | Promise<number | readonly Reading[]>,
  ): void;
  /** All of them in Prometheus' text format 0.0.4. */
  format(): Promise<string>;
}

/** The media type of what `format` makes. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** No metric has more combinations of labels; those that come later are counted together. */
const MAX_SERIES = 5_000;
const OTHER = "other";

interface Family {
  readonly head: string;
  lines(): string[] | Promise<string[]>;
}

/** Makes an empty registry. Counting costs a look-up for each label. */
export function createMetrics(): Metrics {
  const families: Family[] = [];

  function add(type: string, { name, help }: MetricOptions, lines: Family["lines"]): void {
    families.push({ head: `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`, lines });
  }

  return {
    counter(options) {
      const { name, labels = [] } = options;
      const series = createSeries(labels, () => ({ count: 0 }));
      add("counter", options, () =>
        series.list().map(([text, { count }]) => `${name}${braces(text)} ${count}`)
      );
      return {
        add(values, by = 1) {
          series.find(values).count += by;
        },
      };
    },
    histogram(options) {
      const { name, labels = [], bounds } = options;
      const series = createSeries(labels, () => ({
        buckets: new Array<number>(bounds.length + 1).fill(0),
        sum: 0,
      }));
      add("histogram", options, () =>
        series.list().flatMap(([text, { buckets, sum }]) =>
          formatHistogram(name, text, bounds, buckets, sum)
        )
      );
      return {
        observe(values, amount) {
          const found = series.find(values);
          let index = 0;
          while (index < bounds.length && amount > (bounds[index] ?? Infinity)) index++;
          found.buckets[index] = (found.buckets[index] ?? 0) + 1;
          found.sum += amount;
        },
      };
    },
    reading(options, read) {
      add(options.type, options, async () => {
        const found = await read();
        const readings = typeof found === "number" ? [{ value: found }] : found;
        return readings.map(({ labels = {}, value }: Reading) => {
          const text = formatLabels(Object.keys(labels), Object.values(labels));
          return `${options.name}${braces(text)} ${formatNumber(value)}`;
        });
      });
    },
    async format() {
      const parts = await Promise.all(families.map(async ({ head, lines }) => {
        try {
          const found = await lines();
          return found.length === 0 ? "" : `${head}${found.join("\n")}\n`;
        } catch {
          return ""; // the others are needed most where something fails
        }
      }));
      return parts.join("");
    },
  };
}

/** What begins with some values of labels, and the value of those that end with them. */
interface Branch<Value> {
  value: Value | undefined;
  readonly branches: Map<string, Branch<Value>>;
}

/** The values of one metric by its labels; without labels there is one from the beginning. */
function createSeries<Value>(labels: readonly string[], make: () => Value) {
  const root: Branch<Value> = { value: undefined, branches: new Map() };
  const all: [text: string, value: Value][] = [];

  function find(values: readonly string[]): Value {
    let branch: Branch<Value> | undefined = root;
    for (const value of values) branch = branch?.branches.get(value);
    return branch?.value ?? add(values);
  }

  function add(values: readonly string[]): Value {
    const others = labels.map(() => OTHER);
    if (all.length >= MAX_SERIES && values[0] !== OTHER) return find(others);
    let branch = root;
    for (const value of values) {
      const next = branch.branches.get(value) ?? { value: undefined, branches: new Map() };
      branch.branches.set(value, next);
      branch = next;
    }
    const made = branch.value = make();
    all.push([formatLabels(labels, values), made]);
    return made;
  }

  if (labels.length === 0) find([]);
  return { find, list: (): readonly [text: string, value: Value][] => all };
}

function formatHistogram(
  name: string,
  text: string,
  bounds: readonly number[],
  buckets: readonly number[],
  sum: number,
): string[] {
  let count = 0;
  const before = text === "" ? "" : `${text},`;
  const lines = buckets.map((inBucket, index) => {
    count += inBucket;
    const bound = bounds[index];
    const end = bound === undefined ? "+Inf" : formatNumber(bound);
    return `${name}_bucket{${before}le="${end}"} ${count}`;
  });
  return [...lines, `${name}_sum${braces(text)} ${sum}`, `${name}_count${braces(text)} ${count}`];
}

function braces(text: string): string {
  return text === "" ? "" : `{${text}}`;
}

function formatLabels(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeValue(values[index] ?? "")}"`).join(",");
}

function formatNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
