import { type Child, el, fill, svg } from "./element.ts";
import { number } from "./format.ts";

/** What is drawn over time: a value for each step, by the name that its key has. */
export interface Series {
  readonly name: string;
  /** `good`, `bad`, `warn` or `idle`. */
  readonly look: string;
  readonly values: readonly number[];
}

interface ChartOptions {
  /** What it shows, in a sentence, for who does not see it. */
  readonly label: string;
  readonly series: readonly Series[];
  /** Of each step, as the axis and the table name it. */
  readonly steps: readonly string[];
  readonly kind: "area" | "bars";
  readonly height?: string;
  readonly format?: (value: number) => string;
  /** Steps where something happened, in words. */
  readonly marks?: readonly { readonly at: number; readonly words: string }[];
  /** Without an axis of values. */
  readonly bare?: boolean;
}

const [WIDTH, HEIGHT] = [600, 100];
const LABELS = 5;

/**
 * A chart by hand: shapes stretch, words do not. Series stand on one another; who points at it sees
 * the figures of a step, and who wants them all has them as a table.
 */
export function chart(options: ChartOptions): HTMLElement {
  const { label, series, steps, kind, height = "10rem", format = number, marks = [] } = options;
  const sums = steps.map((_, at) => series.reduce((all, { values }) => all + (values[at] ?? 0), 0));
  const top = niceTop(Math.max(...sums, 0));
  const drawn = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  }, [0, 0.5, 1].map((y) => svg("line", { x1: 0, x2: WIDTH, y1: y * HEIGHT, y2: y * HEIGHT })));
  drawn.append(...(kind === "area" ? areas : bars)(series, steps.length, top));
  const said = el("div", { class: "tip", hidden: true });
  const point = (event: PointerEvent) => {
    const box = drawn.getBoundingClientRect();
    const share = Math.min(0.9999, Math.max(0, (event.clientX - box.left) / box.width));
    const at = Math.floor(share * steps.length);
    fill(said, el("b", {}, steps[at]), series.map(({ name, values }) =>
      el("span", {}, ` ${name} ${format(values[at] ?? 0)}`)));
    said.hidden = false;
    said.className = share > 0.6 ? "tip left" : "tip";
  };
  const picture = el("div", {
    class: "p",
    onpointermove: point,
    onpointerleave: () => said.hidden = true,
  }, drawn, marks.map((mark) => markAt(mark, steps.length)), said);
  // The first and the last, and as many between: they stand at equal distances.
  const gaps = Math.max(1, Math.min(LABELS, steps.length) - 1);
  const ticks = Array.from({ length: gaps + 1 }, (_, at) =>
    steps[Math.round(at * (steps.length - 1) / gaps)]);
  const look = options.bare ? "plot bare" : "plot";
  const plot = el("div", { class: look, role: "img", "aria-label": label },
    options.bare ? null : el("div", { class: "y" }, [top, top / 2, 0].map((value) =>
      el("span", {}, format(value)))),
    picture,
    el("div", { class: "x" }, ticks.map((tick) => el("span", {}, tick))));
  plot.style.height = height;
  const columns = [steps, ...series.map(({ values }) => values.map((value) => format(value)))];
  return el("div", {}, plot, asTable(["", ...series.map(({ name }) => name)], columns));
}

/** The same figures for who cannot see the shapes, or wants them exactly. */
function asTable(heads: readonly string[], columns: readonly (readonly string[])[]): HTMLElement {
  const body = el("tbody");
  const details = el("details", { class: "figures" }, el("summary", {}, "Show as table"),
    el("div", { class: "scroll-x" }, el("table", {},
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), body)));
  // Made when it is asked for: mostly nobody does.
  details.addEventListener("toggle", () => fill(body, (columns[0] ?? []).map((_, row) =>
    el("tr", {}, columns.map((column) => el("td", {}, column[row]))))));
  return details;
}

function areas(series: readonly Series[], steps: number, top: number): Element[] {
  let below: readonly number[] = Array.from({ length: steps }, () => 0);
  const x = (at: number) => (steps < 2 ? 0 : (at / (steps - 1)) * WIDTH).toFixed(1);
  const y = (value: number) => (HEIGHT - (value / top) * HEIGHT).toFixed(1);
  const drawn = series.map(({ look, values }) => {
    const above = below.map((value, at) => value + (values[at] ?? 0));
    const line = above.map((value, at) => `${x(at)},${y(value)}`);
    const back = below.map((value, at) => `${x(at)},${y(value)}`).reverse();
    below = above;
    return [
      svg("path", { class: `ar ${look}`, d: `M${[...line, ...back].join("L")}Z` }),
      svg("path", { class: `ln ${look}`, d: `M${line.join("L")}` }),
    ];
  });
  return drawn.reverse().flat(); // the first ones last: one that is nothing hides no other
}

function bars(series: readonly Series[], steps: number, top: number): Element[] {
  const width = WIDTH / Math.max(1, steps);
  const gap = Math.min(4, width / 5);
  return Array.from({ length: steps }, (_, at) => {
    let floor = HEIGHT;
    return series.map(({ look, values }) => {
      const height = ((values[at] ?? 0) / top) * HEIGHT;
      floor -= height;
      const box = { x: at * width + gap / 2, y: floor, width: width - gap, height };
      return svg("rect", { class: `f-${look}`, ...box });
    });
  }).flat();
}

function markAt({ at, words }: { at: number; words: string }, steps: number): Child {
  const look = at > steps * 0.7 ? "m1" : "";
  const made = el("div", { class: "mark" }, el("span", { class: look }, words));
  made.style.left = `${(at / Math.max(1, steps - 1)) * 100}%`;
  return made;
}

/** The next round number, so that an axis ends at one. */
function niceTop(value: number): number {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return size * ([1, 2, 4, 5, 8, 10].find((each) => each * size >= value) ?? 10);
}
