import { list, type Query } from "./api.ts";
import { MOST_ROWS } from "./table.ts";

/** How often a list looks for what nothing tells it of. */
export const LOOK_MS = 10_000;

/** Puts what has come since then on top of a list that is shown, as its `add` does. */
export async function look<Item extends { readonly id: string }>(
  path: string,
  query: Query,
  { node, add }: { readonly node: HTMLElement; add(item: Item): void },
): Promise<void> {
  if (!node.matches(".list-of")) return; // it was refused
  const { items } = await list<Item>(path, { ...query, limit: MOST_ROWS });
  const known = items.findIndex(({ id }) => node.querySelector(`[data-id="${id}"]`));
  items.slice(0, known < 0 ? MOST_ROWS : known).reverse().forEach(add);
}
