import type { Gatepost } from "./gatepost.ts";
import { bearer } from "./requests.ts";

/** One line with a value. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with all its lines. */
export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,(?=[a-zA-Z_])|$)/;
const TYPES = ["counter", "gauge", "histogram"];

/**
 * Parses Prometheus' text format 0.0.4 as strictly as its description allows: one HELP and one TYPE
 * before the lines of a metric, its lines together, no line twice, valid names and labels, and
 * histograms whose buckets grow and end in +Inf. Throws if the text breaks a rule.
 */
export function parseMetrics(text: string): MetricFamily[] {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line has no end");
  const families: (MetricFamily & { samples: Sample[] })[] = [];
  const seen = new Set<string>();
  let help: [name: string, text: string] | undefined;
  for (const line of text.split("\n").slice(0, -1)) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) ?(.*)$/s.exec(line) ?? [];
    if (keyword === "HELP") {
      help = [name, rest];
    } else if (keyword === "TYPE") {
      if (help?.[0] !== name) throw new Error(`${name} has no HELP before its TYPE`);
      if (!TYPES.includes(rest)) throw new Error(`${rest} is not a type`);
      if (!NAME.test(name) || families.some((family) => family.name === name)) {
        throw new Error(`${name} is not a name, or there twice`);
      }
      families.push({ name, type: rest, help: help[1], samples: [] });
    } else {
      const sample = parseSample(line);
      const family = families.at(-1);
      if (!family || !belongsTo(sample.name, family)) throw new Error(`${line} is out of place`);
      const key = line.replace(/ \S+$/, "");
      if (seen.has(key)) throw new Error(`${key} is there twice`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const family of families.filter(({ type }) => type === "histogram")) checkHistogram(family);
  return families;
}

function parseSample(line: string): Sample {
  const [, name = "", , labelText = "", valueText = ""] =
    /^([^\s{]+)(\{(.*)\})? (\S+)$/s.exec(line) ?? [];
  const value = valueText === "+Inf" ? Infinity : Number(valueText);
  const isNumber = valueText !== "" && (valueText === "NaN" || !Number.isNaN(value));
  if (!NAME.test(name) || !isNumber) throw new Error(`${JSON.stringify(line)} is not a sample`);
  const labels: Record<string, string> = {};
  let rest = labelText;
  while (rest !== "") {
    const [all = "", label = "", escaped = ""] = LABEL.exec(rest) ?? [];
    if (all === "" || Object.hasOwn(labels, label)) throw new Error(`${rest} is not a label`);
    labels[label] = escaped.replace(/\\(.)/g, (_, mark: string) => mark === "n" ? "\n" : mark);
    rest = rest.slice(all.length);
  }
  return { name, labels, value };
}

function belongsTo(name: string, { name: family, type }: MetricFamily): boolean {
  if (type !== "histogram") return name === family;
  return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name);
}

function checkHistogram({ name, samples }: MetricFamily): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _le, ...labels } }) =>
    JSON.stringify(labels)
  );
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => labels["le"]);
    const ends = bounds.map((bound) => bound === "+Inf" ? Infinity : Number(bound));
    const total = group.find((sample) => sample.name === `${name}_count`)?.value;
    const isSorted = ends.every((end, index) => index === 0 || end > (ends[index - 1] ?? end));
    const grows = buckets.every(({ value }, index) => value >= (buckets[index - 1]?.value ?? 0));
    const hasSum = group.some((sample) => sample.name === `${name}_sum`);
    const endsWell = ends.at(-1) === Infinity && buckets.at(-1)?.value === total;
    if (!isSorted || !grows || !hasSum || !endsWell) {
      throw new Error(`${name} is not a sound histogram`);
    }
  }
}

/** A metric of a running server, as the sum of the matching labels; throws if there is no value. */
export async function readMetric(
  gatepost: Gatepost,
  metricsToken: string,
  name: string,
  labels = /.*/,
): Promise<number> {
  const { text } = await gatepost.api.get("/system/metrics", bearer(metricsToken));
  const rows = text.split("\n").map((line) => /^(\w+)(\{.*\})? (\S+)$/.exec(line))
    .filter((row) => row?.[1] === name);
  if (rows.length === 0) throw new Error(`${name} has no value`);
  return rows.filter((row) => labels.test(row?.[2] ?? ""))
    .reduce((sum, row) => sum + Number(row?.[3]), 0);
}
