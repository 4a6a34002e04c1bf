import { serverNow } from "./session.ts";

const NUMBER = new Intl.NumberFormat("en-GB");
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A number with a separator between its thousands. */
export const number = (value: number) => NUMBER.format(value);

/** A number, rounded to three significant digits. */
export const rate = (value: number) => number(Number(value.toPrecision(3)));

/** A share of a whole in percent: never 100 where anything is missing. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const digits = part === whole || part === 0 ? 0 : part / whole > 0.999 ? 2 : 1;
  return `${(Math.floor((part / whole) * 100 * 10 ** digits) / 10 ** digits).toFixed(digits)} %`;
}

/** The percentage of the ended deliveries that were delivered. */
export const share = ({ ok, failed }: { readonly ok: number; readonly failed: number }) =>
  percent(ok, ok + failed);

/** A span of milliseconds in its largest unit or two. */
export function duration(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  const [hours, days] = [Math.floor(minutes / 60), Math.floor(minutes / 1440)];
  if (minutes < 60) return `${minutes} min`;
  if (hours < 24) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return `${days} d${hours % 24 ? ` ${hours % 24} h` : ""}`;
}

/** The time of day, to the minute. */
export const clock = (iso: string) => new Date(iso).toTimeString().slice(0, 5);

/** The time of day, with the day unless it is today. */
export function time(iso: string, isLong = false): string {
  const at = new Date(iso);
  const isToday = at.toDateString() === new Date(serverNow()).toDateString();
  const clock = isLong ? `${CLOCK.format(at)}.${iso.slice(20, 23)}` : CLOCK.format(at);
  return isToday ? clock : `${day(iso)}, ${clock}`;
}

/** The day, with its year unless it is this year. */
export function day(iso: string): string {
  const at = new Date(iso);
  const year = at.getFullYear();
  const isThisYear = year === new Date(serverNow()).getFullYear();
  return isThisYear ? DAY.format(at) : `${DAY.format(at)} ${year}`;
}

/** How long ago, in words. */
export function ago(iso: string): string {
  const ms = serverNow() - Date.parse(iso);
  return ms < 0 ? `in ${duration(-ms)}` : ms < 10_000 ? "just now" : `${duration(ms)} ago`;
}

/** An address without its scheme, as host and path. */
export function address(url: string): [host: string, path: string] {
  const { host, pathname, search } = new URL(url);
  return [host, `${pathname}${search}`];
}

/** "1 delivery", "2 deliveries". */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** The name of a member as a label. */
export const wordsOf = (name: string) =>
  (name.charAt(0).toUpperCase() + name.slice(1).replace(/_at$/, "").replaceAll("_", " "))
    .replace(/\b(ur[il]|jwks|pkce)(?=s?\b)/gi, (known) => known.toUpperCase());
