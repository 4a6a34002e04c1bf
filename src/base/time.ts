import { type Shape, shown, text } from "./shape.ts";

const FORM = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** A time in JSON or a query (RFC 3339 §5.6), whose year has four digits in UTC as well. */
export const TIME = text(
  (value) => isTime(value) && toTime(Date.parse(value)).length === 24 ? undefined
    : "Must be a time as in 2030-01-31T12:00:00Z.",
  { format: "date-time" },
);

/** The same time, parsed into milliseconds since 1970. */
export const TIME_MS: Shape<number> = {
  ...shown<number>(TIME.schema),
  parse: (value, report) => Date.parse(TIME.parse(value, report)),
};

/**
 * Whether a text is a time of RFC 3339 that Date accepts, so no leap second. Date.parse() takes 30
 * February as 2 March, which §5.7 forbids.
 */
export function isTime(value: string): boolean {
  const day = value.slice(0, 10);
  return FORM.test(value) && !Number.isNaN(Date.parse(value)) &&
    (day.slice(-2) <= "28" || new Date(day).toISOString().startsWith(day));
}

/** Returns milliseconds since 1970 as a time in UTC (RFC 3339). */
export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
