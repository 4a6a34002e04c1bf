import type { DeliveryFigures } from "./count.ts";

/** What is wrong with the figures of a run, a line each; empty when all is as promised. */
export function findCrashFaults(figures: DeliveryFigures): string[] {
  const faults: string[] = [];
  for (const name of ["lost", "sentThoughRefused", "halfStored", "unexplained", "torn"] as const) {
    if (figures[name] > 0) faults.push(`${name}: ${figures[name]} in place of 0`);
  }
  if (figures.duplicates > figures.inFlight) {
    faults.push(`${figures.duplicates} came again, ${figures.inFlight} were in flight`);
  }
  return faults;
}
