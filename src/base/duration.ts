/** Durations and sizes as an operator writes them: `10s`, `30d`, `64KiB`. Whole numbers only. */

const DURATION_UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

const SIZE_UNITS = [
  ["GiB", 1_073_741_824],
  ["MiB", 1_048_576],
  ["KiB", 1_024],
  ["B", 1],
] as const;

type Units = readonly (readonly [string, number])[];

/**
 * Returns the milliseconds of `500ms`, `10s`, `5m`, `12h`, `30d` or `0`, else undefined: a number
 * without a unit is ambiguous.
 */
export function parseDuration(text: string): number | undefined {
  return text === "0" ? 0 : parseAmount(text, DURATION_UNITS);
}

/** Returns whole milliseconds in the largest unit that holds them exactly: `90s`, `2h`. */
export function formatDuration(ms: number): string {
  return ms === 0 ? "0s" : formatAmount(ms, DURATION_UNITS);
}

/**
 * Returns the bytes of `64KiB`, `1MiB`, `2GiB`, `512B` or `512`, else undefined: `KB` and `MB` mean
 * two things to two readers.
 */
export function parseSize(text: string): number | undefined {
  return parseAmount(/^\d+$/.test(text) ? `${text}B` : text, SIZE_UNITS);
}

/** Returns whole bytes in the largest unit that holds them exactly: `64KiB`, `1500B`. */
export function formatSize(bytes: number): string {
  return bytes === 0 ? "0B" : formatAmount(bytes, SIZE_UNITS);
}

function parseAmount(text: string, units: Units): number | undefined {
  const match = /^(0|[1-9]\d{0,15})([A-Za-z]+)$/.exec(text);
  const factor = units.find(([name]) => name === match?.[2])?.[1];
  if (match === null || factor === undefined) return undefined;
  const amount = Number(match[1]) * factor;
  return Number.isSafeInteger(amount) ? amount : undefined;
}

function formatAmount(amount: number, units: Units): string {
  for (const [name, factor] of units) {
    if (amount % factor === 0) return `${amount / factor}${name}`;
  }
  throw new RangeError("the amount must be a whole number");
}
