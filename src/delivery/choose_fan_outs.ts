const AT_ONCE = 32;
/** How many deliveries all events of a round make together, and each of them. */
const PER_ROUND = 2000;
const PER_EVENT = 500;

/**
 * Chooses which events, given in the order of their dispatch, make deliveries in one round, and how
 * many each makes at most. At least half of the places are for events that have not begun, as long
 * as there are any; of those that have and those that have not, the oldest and the newest share
 * the places. So small events are held up neither by large ones nor by very many.
 *
 * @param events `fannedOut`: the last subscription that has its delivery; 0 where it has not begun
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
