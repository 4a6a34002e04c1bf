/** Keeps what is costly to find out again, and forgets what has not been used lately. */
export interface Cache<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
}

/**
 * Makes a cache of at most `limit` entries. Two generations instead of an order of use: when the
 * young one is full it takes the place of the old one, whose unused entries are lost.
 */
export function createCache<Value>(limit: number): Cache<Value> {
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
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const older = old.get(key);
      if (older !== undefined) set(key, older);
      return older;
    },
  };
}
