// The first name found counts: most browsers also send the names below their own in this list.
const BROWSERS = {
  Edg: "Edge", OPR: "Opera", Firefox: "Firefox", FxiOS: "Firefox", Chromium: "Chromium",
  Chrome: "Chrome", CriOS: "Chrome", Safari: "Safari",
};
const SYSTEMS = {
  iPhone: "iPhone", iPad: "iPad", Android: "Android", Windows: "Windows", "Mac OS": "macOS",
  CrOS: "ChromeOS", Linux: "Linux",
};

/** A browser in words, "Chrome on Linux", by its User-Agent (RFC 9110 §10.1.5). */
export function browserInWords(agent: string | null): string {
  const [browser, system] = [BROWSERS, SYSTEMS].map((names) =>
    Object.entries(names).find(([part]) => agent?.includes(part))?.[1]
  );
  if (browser === undefined) return "Unknown browser";
  return system === undefined ? browser : `${browser} on ${system}`;
}

/** A span of time by its largest unit: "2 min", "3 h", "64 days". */
export function spanInWords(ms: number): string {
  const minutes = Math.max(1, Math.floor(ms / 60_000));
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

/** The day of a time, in UTC: "3 Mar 2026". Intl would cost 30 ms and 6 MiB at the start. */
export function dayInWords(timeMs: number): string {
  const [, day, month, year] = new Date(timeMs).toUTCString().split(" ");
  return `${Number(day)} ${month} ${year}`;
}
