/**
 * Makes a cache of at most `limit` entries for what is costly to find out again; what has not been
 * used lately is forgotten. Two generations instead of an order of use: when the young one is full
 * it takes the place of the old one, whose unused entries are lost.
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
