import { count, number } from "./format.ts";
import { listUntil } from "./list_until.ts";
import { idOf, type Thing } from "./names.ts";
import type { Related } from "./things.ts";

/** Of more the newest are counted, as long as nobody minds to wait. */
const MOST_COUNTED = 2000;

/** How many of what ends with a thing there are now, in words. */
export async function whatEnds(related: readonly Related[], item: Thing): Promise<string> {
  const ending = related.filter(({ ends }) => ends).map(async ({ path, by = "", ends = "" }) => {
    const query = { [by]: idOf(item) };
    const { items, next_cursor } = await listUntil<Thing>(`/backend/${path}`, query, MOST_COUNTED);
    const many = items.filter(({ status }) => status === "active" || status === "paused").length;
    return `${count(many, ends)}${next_cursor ? ` of the first ${number(MOST_COUNTED)}` : ""}`;
  });
  const parts = await Promise.all(ending);
  return parts.length > 0 ? `Ends at once: ${parts.join(", ")}.` : "";
}
