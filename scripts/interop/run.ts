import { inspect } from "node:util";
import type { Client, ClientPackage } from "./client.ts";
import { type Column, SETUPS, TABLES } from "./columns.ts";
import type { PackageLoader } from "./packages.ts";
import { openStage, type Stage } from "./stage.ts";

/** The outcome of a client's feature: unknown, good, or bad with the reasons. */
export type Outcome =
  | { readonly kind: "unknown" }
  | { readonly kind: "good" }
  | { readonly kind: "bad"; readonly reasons: readonly string[] };

/** The outcomes by client and feature. */
export type Outcomes = ReadonlyMap<ClientPackage, ReadonlyMap<Column, Outcome>>;

const TRIAL_MS = 20_000;
const MAX_LINES = 20;

/** Starts one server after the other, and runs all trials of each client against each server. */
export async function runTrials(
  packages: readonly ClientPackage[],
  load: PackageLoader,
  folder: string,
  signal: AbortSignal,
): Promise<Outcomes> {
  const outcomes = new Map(packages.map((each) => [each, new Map<Column, Outcome>()]));
  const columns = TABLES.flatMap((table) => table.columns);
  for (const setup of SETUPS) {
    const stage = await openStage(setup, folder);
    try {
      for (const [each, row] of outcomes) {
        const client = each.open(load, stage);
        for (const column of columns.filter((one) => one.setup === setup)) {
          signal.throwIfAborted();
          row.set(column, await tryColumn(column, client, stage));
        }
      }
    } finally {
      await stage.close();
    }
  }
  return outcomes;
}

async function tryColumn({ parts }: Column, client: Client, stage: Stage): Promise<Outcome> {
  const reasons: string[] = [];
  let isKnown = false;
  for (const { name, trial } of parts) {
    const run = trial(client, stage);
    if (run === undefined) continue;
    isKnown = true;
    try {
      await withLimit(run());
    } catch (error) {
      reasons.push(parts.length === 1 ? tell(error) : `${name}: ${tell(error)}`);
    }
  }
  if (!isKnown) return { kind: "unknown" };
  return reasons.length === 0 ? { kind: "good" } : { kind: "bad", reasons };
}

async function withLimit(work: Promise<void>): Promise<void> {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(() => limit.reject(new Error("not finished within 20 s")), TRIAL_MS);
  await Promise.race([work, limit.promise]).finally(() => clearTimeout(timer));
}

/** The error with all details of the client, in a limited number of lines. */
function tell(error: unknown): string {
  return inspect(error, { depth: 4 }).split("\n").slice(0, MAX_LINES).join("\n");
}
