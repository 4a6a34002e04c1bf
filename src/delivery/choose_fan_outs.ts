/** What of a pending event decides whether it has its turn. */
export interface FanOutCandidate {
  /** The last subscription that has its delivery; 0 where it has not begun. */
  readonly fannedOut: number;
}

const AT_ONCE = 32;
/** How many deliveries all parts of a round make together, and each of them. */
const PER_ROUND = 2000;
const PER_EVENT = 500;

/**
 * Chooses which events, given in the order of their dispatch, make deliveries in one round, and how
 * many each makes at most. At least half of the turns are for events that have not begun, as long
 * as there are any, and of either kind the oldest and the newest share theirs: so small ones are
 * held up neither by large ones nor by very many.
 */
export function chooseFanOuts<Event extends FanOutCandidate>(
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
