/** Values of a metric's labels, in the order of their names. */
type Labels = readonly string[];

/** The result of a reading: one value, or one for each combination of the labels' values. */
type Reading = number | readonly (readonly [labels: Labels, value: number])[];

/** The meaning of a metric, and the source of its values. `read` gets `Sources`. */
export interface Metric<Sources> {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: Labels;
  /** For a histogram: the upper ends of its buckets, ascending, without infinity. */
  readonly bounds?: readonly number[];
  /** For a counter: series that are 0 from the start, so that an alert sees the first count. */
  readonly initial?: readonly Labels[];
  /** Reads the values when the metrics are requested. If it throws, the metric is left out. */
  readonly read?: Read<Sources>;
}

export type Read<Sources> = (sources: Sources) => Reading | Promise<Reading>;

/** Metrics by their names, as Prometheus has them: in a base unit; counters end in `_total`. */
export type MetricTable<Sources> = Readonly<Record<string, Metric<Sources>>>;

/** A count that only grows. */
export function counter<const L extends Labels>(help: string, ...labels: L) {
  return { type: "counter", help, labels } as const;
}

/** A count of observations, their sum, and how many are in each bucket up to these bounds. */
export function histogram<const L extends Labels>(
  help: string,
  bounds: readonly number[],
  ...labels: L
) {
  return { type: "histogram", help, labels, bounds } as const;
}

/** The names of metrics of one type that are counted, not read. */
type Counted<Table, Type> = {
  [K in keyof Table]: Table[K] extends { readonly type: Type; readonly read?: never } ? K : never;
}[keyof Table & string];

/** One value for each label of a metric. */
type LabelsOf<M> = M extends { readonly labels: infer L } ? { readonly [I in keyof L]: string }
  : never;

/** The media type of what `format` makes. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The most series of one metric. Later combinations of labels are counted together. */
const MAX_SERIES = 5_000;
const OTHER = "other";

/** One series, for one combination of labels: its sum, and the counts of a histogram's buckets. */
interface Count {
  readonly labels: string;
  sum: number;
  readonly buckets: number[];
}

/** Makes the metrics of a table. Counting costs a look-up for the name and one for each label. */
export function createMetrics<Sources, const Table extends MetricTable<Sources>>(
  table: Table & MetricTable<Sources>,
) {
  const entries: readonly [name: string, metric: Metric<Sources>][] = Object.entries(table);
  const series = new Map(entries
    .filter(([, { read }]) => !read)
    .map(([name, metric]) => [name, createSeries(name, metric)]));

  async function formatFamily(
    [name, { type, help, labels, read }]: (typeof entries)[number],
    sources: Sources,
  ): Promise<string> {
    try {
      const lines = read
        ? formatReading(name, labels, await read(sources))
        : series.get(name)?.lines() ?? [];
      if (lines.length === 0) return "";
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("\n")}\n`;
    } catch {
      return ""; // where something fails, the other metrics are needed most
    }
  }

  return {
    /** Adds 1, or `by`, to a counter. */
    count<K extends Counted<Table, "counter">>(name: K, labels: LabelsOf<Table[K]>, by = 1): void {
      series.get(name)?.add(labels, by);
    },
    /** Adds an amount to a histogram. */
    observe<K extends Counted<Table, "histogram">>(
      name: K,
      labels: LabelsOf<Table[K]>,
      amount: number,
    ): void {
      series.get(name)?.add(labels, amount);
    },
    /** Returns all metrics in Prometheus' text format 0.0.4. */
    async format(sources: Sources): Promise<string> {
      const families = await Promise.all(entries.map((entry) => formatFamily(entry, sources)));
      return families.join("");
    },
  };
}

/** A node of the tree: branches by the next label's value, and the series that ends here. */
interface Branch {
  readonly branches: Map<string, Branch>;
  count: Count | undefined;
}

const newBranch = (): Branch => ({ branches: new Map(), count: undefined });

/**
 * Makes the series of one metric. Without labels there is one series from the start. The series are
 * in a tree: a single key of all values would have to be built and hashed for each request.
 */
function createSeries(name: string, { labels, bounds, initial = [] }: Metric<never>) {
  const root = newBranch();
  const counts: Count[] = [];
  const others = labels.map(() => OTHER);

  function find(values: Labels): Count {
    let branch: Branch | undefined = root;
    for (const value of values) branch = branch?.branches.get(value);
    return branch?.count ?? begin(values);
  }

  function begin(values: Labels): Count {
    if (counts.length >= MAX_SERIES && values !== others) return find(others);
    let branch = root;
    for (const value of values) branch = branch.branches.getOrInsertComputed(value, newBranch);
    const buckets = new Array<number>(bounds ? bounds.length + 1 : 0).fill(0);
    const count = { labels: formatLabels(labels, values), sum: 0, buckets };
    counts.push(count);
    return branch.count = count;
  }

  if (labels.length === 0) find([]);
  for (const values of initial) find(values);
  return {
    add(values: Labels, amount: number): void {
      const count = find(values);
      count.sum += amount;
      if (!bounds) return;
      let index = 0;
      while (index < bounds.length && amount > (bounds[index] ?? Infinity)) index++;
      count.buckets[index] = (count.buckets[index] ?? 0) + 1;
    },
    lines: () =>
      counts.flatMap((count) =>
        bounds
          ? formatHistogram(name, bounds, count)
          : `${name}${braces(count.labels)} ${count.sum}`
      ),
  };
}

function formatHistogram(name: string, bounds: readonly number[], count: Count): string[] {
  const { labels, sum, buckets } = count;
  const before = labels === "" ? "" : `${labels},`;
  let total = 0;
  return [
    ...buckets.map((inBucket, index) => {
      total += inBucket;
      const end = formatNumber(bounds[index] ?? Infinity);
      return `${name}_bucket{${before}le="${end}"} ${total}`;
    }),
    `${name}_sum${braces(labels)} ${sum}`,
    `${name}_count${braces(labels)} ${total}`,
  ];
}

function formatReading(name: string, labels: Labels, reading: Reading): string[] {
  const readings = typeof reading === "number" ? [[[], reading] as const] : reading;
  return readings.map(([values, value]) =>
    `${name}${braces(formatLabels(labels, values))} ${formatNumber(value)}`
  );
}

function braces(text: string): string {
  return text === "" ? "" : `{${text}}`;
}

function formatLabels(names: Labels, values: Labels): string {
  return names.map((name, index) => `${name}="${escapeValue(values[index] ?? "")}"`).join(",");
}

function formatNumber(value: number): string {
  return value === Infinity ? "+Inf" : String(value).replace("Infinity", "Inf");
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
