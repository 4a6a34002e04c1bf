import type { TestContext } from "node:test";

/** A seeded source of random test inputs: the same seed gives the same inputs everywhere. */
export interface Random {
  readonly seed: number;
  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number;
  /** True in `percent` of a hundred cases. */
  chance(percent: number): boolean;
  /** One of `items`, which must not be empty. */
  pick<Item>(items: ArrayLike<Item>): Item;
  /** Up to `maxLength` characters of `alphabet`. */
  text(alphabet: string, maxLength: number): string;
  /** Up to `maxLength` bytes of any value. */
  bytes(maxLength: number): Uint8Array;
  /** `text` with one to three parts cut out, doubled, or replaced by or extended with `pieces`. */
  mutate(text: string, pieces: readonly string[]): string;
  /** An input in a message, with the seed that repeats it. */
  describe(input: string): string;
}

const SEED = readSeed(process.env["GATEPOST_SEED"]);

/**
 * Returns the random source of one test and prints its seed; GATEPOST_SEED repeats a run. Each test
 * has a source of its own, so that it makes the same inputs alone as among other tests.
 */
export function openRandom(test: TestContext): Random {
  test.diagnostic(`GATEPOST_SEED=${SEED}`);
  let mixed = SEED;
  for (const character of test.name) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x01000193);
  return createRandom(mixed >>> 0, SEED);
}

/** Returns a random source that starts at `start`; `seed` is what a message should name. */
export function createRandom(start: number, seed: number = start): Random {
  let state = start >>> 0;
  // Mulberry32: 32 bits of state are plenty for test inputs.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const random: Random = {
    seed,
    below: (limit) => next() % limit,
    chance: (percent) => next() % 100 < percent,
    pick(items) {
      const item = items[next() % items.length];
      if (item === undefined) throw new RangeError("Nothing to pick from.");
      return item;
    },
    text(alphabet, maxLength) {
      const characters = [...alphabet];
      const length = random.below(maxLength + 1);
      return Array.from({ length }, () => random.pick(characters)).join("");
    },
    bytes: (maxLength) =>
      Uint8Array.from({ length: random.below(maxLength + 1) }, () => next() & 0xff),
    mutate(text, pieces) {
      let mutant = text;
      for (let count = 1 + random.below(3); count > 0; count--) {
        const from = random.below(mutant.length + 1);
        const to = Math.min(mutant.length, from + random.below(4));
        const cut = mutant.slice(from, to);
        const piece = random.pick(pieces);
        const filling = random.pick(["", cut + cut, piece, cut + piece]);
        mutant = mutant.slice(0, from) + filling + mutant.slice(to);
      }
      return mutant;
    },
    describe: (input) => `GATEPOST_SEED=${seed}: ${JSON.stringify(input)}`,
  };
  return random;
}

function readSeed(text: string | undefined): number {
  if (text === undefined || text === "") return Math.floor(Math.random() * 2 ** 32);
  const seed = Number(text);
  if (!Number.isSafeInteger(seed)) throw new Error("GATEPOST_SEED must be an integer.");
  return seed;
}
