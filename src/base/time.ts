import { type Shape, shown, text } from "./shape.ts";

const FORM = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** A time as JSON and queries have it (RFC 3339 §5.6), in UTC too: there are 24 characters then. */
export const TIME = text(
  (value) => isTime(value) && toTime(Date.parse(value)).length === 24 ? undefined
    : "Must be a time as in 2030-01-31T12:00:00Z.",
  { format: "date-time" },
);

/** The same; parsed, it is milliseconds since 1970. */
export const TIME_MS: Shape<number> = {
  ...shown<number>(TIME.schema),
  parse: (value, report) => Date.parse(TIME.parse(value, report)),
};

/**
 * Whether a text is a time of RFC 3339 that Date knows: no leap second. Date.parse() takes
 * 30 February for 2 March, which §5.7 does not.
 */
export function isTime(value: string): boolean {
  const day = value.slice(0, 10);
  return FORM.test(value) && !Number.isNaN(Date.parse(value)) &&
    (day.slice(-2) <= "28" || new Date(day).toISOString().startsWith(day));
}

/** Milliseconds since 1970 as JSON has them. */
export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
