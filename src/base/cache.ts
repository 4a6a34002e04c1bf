/**
 * Makes a cache of about `limit` entries, which evicts entries that are not used. It keeps two
 * generations instead of an order of use. When the young generation is full, it replaces the old
 * one, whose unused entries are lost.
 */
export function createCache<Value>(limit: number) {
  const half = Math.ceil(limit / 2);
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();

  function set(key: string, value: Value): void {
    if (young.size >= half) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    set,
    get(key: string): Value | undefined {
      const value = young.get(key);
      if (value !== undefined) return value;
      const older = old.get(key);
      if (older !== undefined) set(key, older);
      return older;
    },
  };
}

/** Makes a look-up with a cache, which is emptied when `countChanges` returns another number. */
export function createLookup<Asked extends readonly string[], Found>(
  limit: number,
  countChanges: () => number | undefined,
  find: (...asked: Asked) => Promise<Found | undefined>,
) {
  let cache = createCache<Found>(limit);
  let seen: number | undefined;
  return async (...asked: Asked): Promise<Found | undefined> => {
    const changes = countChanges();
    if (changes !== seen) cache = createCache(limit);
    seen = changes;
    const current = cache; // a result that a change overtakes must not enter the new cache
    const key = asked.join(" ");
    const known = current.get(key);
    if (known) return known;
    const found = await find(...asked);
    if (found) current.set(key, found);
    return found;
  };
}
