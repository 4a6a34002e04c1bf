import { list, type Query } from "./api.ts";
import { type Child, el, fill } from "./element.ts";
import { button, failure } from "./parts.ts";
import { every } from "./stream.ts";

/** A column: its heading, its classes (`num`, `hide-s`, `wide` …), and the content of its cells. */
export type Column<Item> =
  readonly [name: string, look: string, cell: { of(item: Item): Child }["of"]];

/** A table; on small screens its rows become cards. */
export function table<Item>(columns: readonly Column<Item>[], items: readonly Item[]) {
  const body = el("tbody", items.map((item) => row(columns, item)));
  const heads = columns.map(([name, look]) =>
    el("th", { scope: "col", class: look }, name || el("span.sr", "Actions")));
  return el("table.cards", el("thead", el("tr", heads)), body);
}

const idOf = (item: unknown) => (item as { readonly id?: string }).id;

function row<Item>(columns: readonly Column<Item>[], item: Item): HTMLTableRowElement {
  return el("tr", { "data-id": idOf(item) },
    columns.map(([name, look, cell]) => el("td", { class: look, "data-name": name }, cell(item))));
}

interface ListOptions<Item> {
  readonly path: string;
  readonly query?: Query;
  readonly columns: readonly Column<Item>[];
  /** The text of an empty list: what would be listed, why nothing is, and what changes that. */
  readonly empty: Child;
  readonly limit?: number;
  /** If given, the list polls for new items until the signal aborts. */
  readonly signal?: AbortSignal;
}

/** How many rows a list keeps when new ones are added. */
export const MOST_ROWS = 200;
/** How often a list polls for records that the stream does not report. */
export const LOOK_MS = 10_000;

/**
 * Shows a list of the server part by part. `add` puts a new item on top, behind a button so that no
 * row moves under the pointer; an item that is listed already changes in place. If the server
 * refuses the list, the error is shown instead, so that the user can correct the filters.
 */
export const listTable = <Item>(options: ListOptions<Item>) =>
  makeList(options).catch((error: unknown) => ({ node: failure(error), add() {} }));

async function makeList<Item>(options: ListOptions<Item>) {
  const { path, query, columns, empty, limit = 25, signal } = options;
  const first = await list<Item>(path, { ...query, limit });
  const shown = table(columns, first.items);
  const body = shown.tBodies[0] ?? el("tbody");
  const foot = el("div.foot.spread");
  const fresh: HTMLTableRowElement[] = [];
  const more = el("button.btn.tiny.fresh", {
    hidden: true, onclick: () => {
      showFresh();
      goOn(body.rows[0]);
    },
  });
  const node = el("div.list-of", more, shown, foot);
  let cursor = first.next_cursor;

  function showFresh(): void {
    body.prepend(...fresh.splice(0));
    while (body.rows.length > MOST_ROWS) {
      body.deleteRow(-1);
      cursor = body.rows[MOST_ROWS - 1]?.dataset["id"] ?? cursor; // "Show more" starts from the cut
    }
    settle();
  }

  async function showMore(): Promise<void> {
    const part = await list<Item>(path, { ...query, limit, cursor });
    cursor = part.next_cursor;
    const rows = part.items.map((item) => row(columns, item));
    body.append(...rows);
    settle();
    goOn(rows[0]);
  }

  function settle(): void {
    const rows = body.rows.length;
    shown.hidden = rows === 0;
    more.hidden = fresh.length === 0;
    more.textContent = `${fresh.length} new`;
    fill(foot,
      rows === 0 ? el("div.empty", cursor ? "Nothing yet: there is more to look through." : empty)
        : el("span.small.muted", cursor ? `${rows} shown` : `${rows} in all`),
      cursor && button("Show more", showMore, { kind: "tiny" }));
  }

  /** Puts an item on top: at once in an empty list, else behind a button. */
  function add(item: Item): void {
    const made = row(columns, item);
    const { id } = made.dataset;
    const there = id && [...body.rows, ...fresh].find((each) => each.dataset["id"] === id);
    if (there) return change(there, made);
    // An item below the last row is not new, but it may have got the status of the filter only now.
    if (id && cursor && id < cursor && !query?.["status"]) return;
    fresh.unshift(made);
    if (fresh.length > MOST_ROWS) fresh.pop();
    if (body.rows.length === 0) showFresh();
    else settle();
  }

  /** Adds the items that are newer than those listed. */
  async function look(): Promise<void> {
    const { items } = await list<Item>(path, { ...query, limit: MOST_ROWS });
    const known = items.findIndex((item) => body.querySelector(`[data-id="${idOf(item)}"]`));
    items.slice(0, known < 0 ? MOST_ROWS : known).reverse().forEach(add);
  }

  settle();
  if (signal) every(LOOK_MS, look, signal);
  return { node, add };
}

/** Focuses the link of a new row, since the button that has added the row is gone. */
function goOn(row: HTMLElement | undefined): void {
  if (row) row.tabIndex = -1;
  (row?.querySelector("a") ?? row)?.focus();
}

/** Replaces the cells of a row, except one that has the focus. */
function change(there: HTMLTableRowElement, made: HTMLTableRowElement): void {
  const cells = [...made.cells]; // a copy, since cells leave the row when they are moved
  [...there.cells].forEach((cell, at) => {
    if (!cell.matches(":focus-within")) cell.replaceWith(cells[at] ?? "");
  });
}

/** Shows content that comes later: a placeholder at first, then the content or the error. */
export function later(comes: Promise<Child>, waiting?: Child): HTMLElement {
  const place = el("div.later", { "aria-busy": "true" }, waiting ?? el("p.muted.wait", "…"));
  comes.then((child) => fill(place, child), (error: unknown) => fill(place, failure(error)))
    .finally(() => place.ariaBusy = null);
  return place;
}

/** The names of series beside their colours. */
export function key(series: readonly Readonly<Record<"name" | "look", string>>[]): HTMLElement {
  return el("div.key", series.map(({ name, look }) => el("span", { class: look }, name)));
}

/** A health strip: one bar for each step, in a colour that says how much of it succeeded. */
export function strip(
  label: string,
  steps: readonly { readonly ok: number; readonly bad: number; readonly name?: string }[],
): HTMLElement {
  const look = ({ ok, bad }: { ok: number; bad: number }) =>
    ok + bad === 0 ? "idle" : bad === 0 ? "ok" : ok > bad ? "warn" : "bad";
  return el("div.strip", { role: "img", "aria-label": label }, steps.map((step) =>
    el("i", { class: look(step), title: `${step.name ?? ""} ${step.ok} ok, ${step.bad} failed` })));
}
