import type { CrashFigures } from "./matrix.ts";

/** What is wrong with the figures of a run, a line each; empty when all is as promised. */
export function findCrashFaults(figures: CrashFigures): string[] {
  const faults: string[] = [];
  const expectNone = (name: "lost" | "sentThoughRefused" | "halfStored" | "unexplained" | "torn") => {
    if (figures[name] > 0) faults.push(`${name}: ${figures[name]} in place of 0`);
  };
  expectNone("lost");
  expectNone("sentThoughRefused");
  expectNone("halfStored");
  expectNone("unexplained");
  expectNone("torn");
  if (figures.duplicates > figures.inFlight) {
    faults.push(`${figures.duplicates} came again, ${figures.inFlight} were in flight`);
  }
  return faults;
}
