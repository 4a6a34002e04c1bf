import { list, type Part, type Query } from "./api.ts";

/** One part of a list after the other, until it ends or this many have come, or such a one. */
export async function listUntil<Item>(
  path: string,
  query: Query,
  most: number,
  isWanted: (item: Item) => boolean = () => false,
): Promise<Part<Item>> {
  let [items, next_cursor]: [readonly Item[], string | null] = [[], ""];
  while (next_cursor !== null && items.length < most && !items.some(isWanted)) {
    const part: Part<Item> = await list(path, { ...query, limit: 200, cursor: next_cursor });
    [items, next_cursor] = [[...items, ...part.items], part.next_cursor];
  }
  return { items, next_cursor };
}
