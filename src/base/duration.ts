/** Durations and sizes as an operator writes them: `10s`, `30d`, `64KiB`. Whole numbers only. */

/** Units by their names, the largest first. */
type Units = Readonly<Record<string, number>>;

const DURATION_UNITS: Units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const SIZE_UNITS: Units = { GiB: 1024 ** 3, MiB: 1024 ** 2, KiB: 1024, B: 1 };

/** Milliseconds of `500ms`, `10s`, `5m`, `12h`, `30d` or `0`, else undefined: `5` is ambiguous. */
export function parseDuration(text: string): number | undefined {
  return text === "0" ? 0 : parseAmount(text, DURATION_UNITS);
}

/** Returns whole milliseconds in the largest unit that holds them exactly: `90s`, `2h`. */
export function formatDuration(ms: number): string {
  return ms === 0 ? "0s" : formatAmount(ms, DURATION_UNITS);
}

/** Bytes of `64KiB`, `1MiB`, `2GiB`, `512B` or `512`, else undefined: `KB` is ambiguous. */
export function parseSize(text: string): number | undefined {
  return parseAmount(/^\d+$/.test(text) ? `${text}B` : text, SIZE_UNITS);
}

/** Returns whole bytes in the largest unit that holds them exactly: `64KiB`, `1500B`. */
export function formatSize(bytes: number): string {
  return bytes === 0 ? "0B" : formatAmount(bytes, SIZE_UNITS);
}

function parseAmount(text: string, units: Units): number | undefined {
  const [, number, unit = ""] = /^(0|[1-9]\d{0,15})([A-Za-z]+)$/.exec(text) ?? [];
  const amount = Number(number) * (units[unit] ?? NaN);
  return Number.isSafeInteger(amount) ? amount : undefined;
}

function formatAmount(amount: number, units: Units): string {
  for (const [name, factor] of Object.entries(units)) {
    if (amount % factor === 0) return `${amount / factor}${name}`;
  }
  throw new RangeError("the amount must be a whole number");
}
