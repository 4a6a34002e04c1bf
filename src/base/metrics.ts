/** Values of a metric's labels, in the order of their names. */
type Labels = readonly string[];

/** What a reading may give: one value, or one for each combination of the labels' values. */
type Reading = number | readonly (readonly [labels: Labels, value: number])[];

/** What a metric means, and where its values come from; `Sources` is what readings look at. */
export interface Metric<Sources> {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: Labels;
  /** Of a histogram: the upper ends of its buckets, ascending, without infinity. */
  readonly bounds?: readonly number[];
  /** Of a counter: series that are 0 from the start, so that an alert sees the first count. */
  readonly initial?: readonly Labels[];
  /** Reads it when the metrics are requested; it is left out where that fails. */
  readonly read?: Read<Sources>;
}

export type Read<Sources> = (sources: Sources) => Reading | Promise<Reading>;

/** Metrics by their names, as Prometheus has them: in a base unit; counters end in `_total`. */
export type MetricTable<Sources> = Readonly<Record<string, Metric<Sources>>>;

/** A count that only grows. */
export function counter<const L extends Labels>(help: string, ...labels: L) {
  return { type: "counter", help, labels } as const;
}

/** How often, how much in all, and how it is spread over buckets up to these bounds. */
export function histogram<const L extends Labels>(
  help: string,
  bounds: readonly number[],
  ...labels: L
) {
  return { type: "histogram", help, labels, bounds } as const;
}

/** The names of those that are counted, not read. */
type Counted<Table, Type> = {
  [K in keyof Table]: Table[K] extends { readonly type: Type; readonly read?: never } ? K : never;
}[keyof Table & string];

/** As many values as a metric has labels. */
type LabelsOf<M> = M extends { readonly labels: infer L } ? { readonly [I in keyof L]: string }
  : never;

/** The metrics of a process. */
export interface Metrics<Table, Sources> {
  /** Adds 1, or `by`, to a counter. */
  count<K extends Counted<Table, "counter">>(
    name: K,
    labels: LabelsOf<Table[K]>,
    by?: number,
  ): void;
  /** Adds an amount to a histogram. */
  observe<K extends Counted<Table, "histogram">>(
    name: K,
    labels: LabelsOf<Table[K]>,
    amount: number,
  ): void;
  /** All of them in Prometheus' text format 0.0.4. */
  format(sources: Sources): Promise<string>;
}

/** The media type of what `format` makes. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** No metric has more combinations of labels; later ones are counted together. */
const MAX_SERIES = 5_000;
const OTHER = "other";

/** What is counted of one metric. */
interface Series {
  add(labels: Labels, amount: number): void;
  lines(): string[];
}

/** Makes the metrics of a table. Counting costs a look-up for the name and for each label. */
export function createMetrics<Sources, const Table extends MetricTable<Sources>>(
  table: Table & MetricTable<Sources>,
): Metrics<Table, Sources> {
  const entries: readonly [name: string, metric: Metric<Sources>][] = Object.entries(table);
  const series = new Map(entries.filter(([, { read }]) => !read).map(([name, metric]) => {
    const { labels, bounds, initial = [] } = metric;
    const made = bounds ? createHistogram(name, labels, bounds) : createCounter(name, labels);
    for (const values of initial) made.add(values, 0);
    return [name, made];
  }));

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
      return ""; // the others are needed most where something fails
    }
  }

  return {
    count: (name, labels, by = 1) => series.get(name)?.add(labels, by),
    observe: (name, labels, amount) => series.get(name)?.add(labels, amount),
    async format(sources) {
      const families = await Promise.all(entries.map((entry) => formatFamily(entry, sources)));
      return families.join("");
    },
  };
}

function createCounter(name: string, labels: Labels): Series {
  const series = createSeries(labels, () => ({ count: 0 }));
  return {
    add(values, by) {
      series.find(values).count += by;
    },
    lines: () => series.all.map(([text, { count }]) => `${name}${braces(text)} ${count}`),
  };
}

/** A node of the tree of label values: the value at it, and its children by the next label. */
interface Branch<Value> {
  value: Value | undefined;
  readonly branches: Map<string, Branch<Value>>;
}

/** The values of one metric by its labels; without labels there is one from the beginning. */
function createSeries<Value>(labels: Labels, make: () => Value) {
  const root: Branch<Value> = { value: undefined, branches: new Map() };
  const all: [text: string, value: Value][] = [];

  function find(values: Labels): Value {
    let branch: Branch<Value> | undefined = root;
    for (const value of values) branch = branch?.branches.get(value);
    return branch?.value ?? add(values);
  }

  function add(values: Labels): Value {
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
  return { find, all };
}

function createHistogram(name: string, labels: Labels, bounds: readonly number[]): Series {
  const series = createSeries(labels, () => ({
    buckets: new Array<number>(bounds.length + 1).fill(0),
    sum: 0,
  }));
  return {
    add(values, amount) {
      const found = series.find(values);
      let index = 0;
      while (index < bounds.length && amount > (bounds[index] ?? Infinity)) index++;
      found.buckets[index] = (found.buckets[index] ?? 0) + 1;
      found.sum += amount;
    },
    lines: () =>
      series.all.flatMap(([text, { buckets, sum }]) => {
        let count = 0;
        const before = text === "" ? "" : `${text},`;
        return [
          ...buckets.map((inBucket, index) => {
            count += inBucket;
            const end = formatNumber(bounds[index] ?? Infinity);
            return `${name}_bucket{${before}le="${end}"} ${count}`;
          }),
          `${name}_sum${braces(text)} ${sum}`,
          `${name}_count${braces(text)} ${count}`,
        ];
      }),
  };
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
