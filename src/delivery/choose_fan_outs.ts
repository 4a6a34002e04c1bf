const AT_ONCE = 32;
/** How many deliveries one round makes, and how many of them for one event. */
const PER_ROUND = 2000;
const PER_EVENT = 500;

/**
 * Chooses the events whose deliveries are made in one round, and how many each event may make.
 * Events that have not begun get at least half of the places. Among these, and among events under
 * way, the oldest and the newest share the places. So neither a large event nor a great number of
 * events holds a small one up.
 *
 * @param events in the order of their dispatch; `fannedOut` is the last subscription that has its
 *   delivery, 0 before the first
 */
export function chooseFanOuts<Event extends { readonly fannedOut: number }>(
  events: readonly Event[],
): { readonly chosen: readonly Event[]; readonly limit: number } {
  const fresh = events.filter(({ fannedOut }) => fannedOut === 0);
  const underWay = events.filter(({ fannedOut }) => fannedOut > 0);
  const begin = takeFromEnds(fresh, Math.max(AT_ONCE / 2, AT_ONCE - underWay.length));
  const chosen = [...begin, ...takeFromEnds(underWay, AT_ONCE - begin.length)];
  return { chosen, limit: Math.min(PER_EVENT, Math.floor(PER_ROUND / Math.max(1, chosen.length))) };
}

function takeFromEnds<Item>(items: readonly Item[], count: number): readonly Item[] {
  if (items.length <= count) return items;
  const newest = Math.floor(count / 2);
  return [...items.slice(0, count - newest), ...items.slice(items.length - newest)];
}
