import { type Child, el, fill, svg } from "./element.ts";
import { number } from "./format.ts";

/** One series of a chart: a value for each step, and the name that the key shows. */
export interface Series {
  readonly name: string;
  /** `ok`, `bad` or `warn`. */
  readonly look: string;
  readonly values: readonly number[];
}

interface ChartOptions {
  /** What the chart shows, in a sentence for screen readers. */
  readonly label: string;
  readonly series: readonly Series[];
  /** The name of each step. The axis shows only the part before its comma. */
  readonly steps: readonly string[];
  readonly kind: "area" | "bars";
  readonly height?: string;
  readonly format?: (value: number) => string;
  /** Steps where something happened, in words. */
  readonly marks?: readonly { readonly at: number; readonly words: string }[];
  /** Whether there is no axis of values. */
  readonly bare?: boolean;
}

const [WIDTH, HEIGHT] = [600, 100];
const LABELS = 5;

/**
 * A stacked chart: its SVG shapes stretch, its HTML text does not. The pointer shows the figures of
 * a step, and a table shows all figures.
 */
export function chart(options: ChartOptions): HTMLElement {
  const { label, series, steps, height = "10rem", format = number, marks = [] } = options;
  const sums = steps.map((_, at) => series.reduce((all, { values }) => all + (values[at] ?? 0), 0));
  const top = niceTop(Math.max(...sums, 0));
  const drawn = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
  }, [0, 0.5, 1].map((y) => svg("line", { x1: 0, x2: WIDTH, y1: y * HEIGHT, y2: y * HEIGHT })),
  shapes(options, top));
  const tip = el("div.tip", { hidden: true });
  const point = ({ clientX }: PointerEvent) => {
    const { left, width } = drawn.getBoundingClientRect();
    const share = Math.min(0.9999, Math.max(0, (clientX - left) / width));
    const at = Math.floor(share * steps.length);
    fill(tip, el("b", steps[at]), series.map(({ name, values }) =>
      el("span", ` ${name} ${format(values[at] ?? 0)}`)));
    tip.hidden = false;
    tip.classList.toggle("left", share > 0.6);
  };
  const leave = () => tip.hidden = true;
  // The axis names the first step, the last and some between, at equal distances.
  const gaps = Math.max(1, Math.min(LABELS, steps.length) - 1);
  const ticks = Array.from({ length: gaps + 1 }, (_, at) =>
    steps[Math.round(at * (steps.length - 1) / gaps)]?.split(",")[0]);
  const plot = el(options.bare ? "div.plot.bare" : "div.plot", { role: "img", "aria-label": label },
    !options.bare && el("div.y", [top, top / 2, 0].map((value) => el("span", format(value)))),
    el("div.p", { onpointermove: point, onpointerleave: leave },
      drawn, marks.map((mark) => markAt(mark, steps.length)), tip),
    el("div.x", ticks.map((tick) => el("span", tick))));
  plot.style.height = height;
  const columns = [steps, ...series.map(({ values }) => values.map((value) => format(value)))];
  return el("div", plot, asTable(["", ...series.map(({ name }) => name)], columns));
}

/** The figures as a table, for users who cannot see the shapes or want exact values. */
function asTable(heads: readonly string[], columns: readonly (readonly string[])[]): HTMLElement {
  const body = el("tbody");
  const details = el("details.figures", el("summary", "Show as table"),
    el("div.scroll-x", el("table",
      el("thead", el("tr", heads.map((head) => el("th", { scope: "col" }, head)))), body)));
  // The rows are made when the table is opened, since few users open it.
  details.addEventListener("toggle", () => fill(body, (columns[0] ?? []).map((_, row) =>
    el("tr", columns.map((column) => el("td", column[row]))))));
  return details;
}

/** The shapes of the stacked series. */
function shapes({ kind, series, steps }: ChartOptions, top: number): Child {
  const y = (value = 0) => (HEIGHT - (value / top) * HEIGHT).toFixed(1);
  const x = (at: number) => (at / Math.max(1, steps.length - 1) * WIDTH).toFixed(1);
  const width = WIDTH / Math.max(1, steps.length);
  const gap = Math.min(4, width / 5);
  let level: readonly number[] = steps.map(() => 0);
  return series.map(({ look, values }) => {
    const floor = level;
    level = floor.map((value, at) => value + (values[at] ?? 0));
    if (kind === "bars") {
      const bars = level.map((value, at) => `M${(at * width + gap / 2).toFixed(1)},` +
        `${y(floor[at])}V${y(value)}h${(width - gap).toFixed(1)}V${y(floor[at])}`);
      return svg("path", { class: `fill ${look}`, d: bars.join("") });
    }
    const points = (all: typeof level) => all.map((value, at) => `${x(at)},${y(value)}`);
    const [line, back] = [points(level), points(floor).reverse()];
    return [
      svg("path", { class: `ar ${look}`, d: `M${[...line, ...back].join("L")}Z` }),
      svg("path", { class: `ln ${look}`, d: `M${line.join("L")}` }),
    ];
  }).reverse(); // the first is drawn last: a series of zeros hides no other
}

function markAt({ at, words }: { at: number; words: string }, steps: number): Child {
  const look = at > steps / 2 ? "m1" : ""; // there is more room on its left
  const made = el("div.mark", el("span", { class: look }, words));
  made.style.left = `${(at / Math.max(1, steps - 1)) * 100}%`;
  return made;
}

/** The next round number, at which the axis ends. */
function niceTop(value: number): number {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return size * ([1, 2, 4, 5, 8, 10].find((each) => each * size >= value) ?? 10);
}
