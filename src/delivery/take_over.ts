import type { Log } from "../base/log.ts";
import { releaseCronjobs } from "../store/cronjobs.ts";
import type { Database } from "../database/database.ts";
import { listClaimed, releaseDeliveries } from "../store/deliveries.ts";

/** What it takes to take work over. */
interface TakeOverOptions {
  readonly database: Database;
  readonly log: Log;
  readonly now: () => number;
}

/** Gives back what a process that has ended had claimed, without waiting for its leases. */
export async function takeOver(options: TakeOverOptions, claim: string): Promise<void> {
  await takeOverDeliveries(options, claim);
  await options.database.write([releaseCronjobs(claim)]);
}

/** The same of deliveries alone, whose thread may have died while its process lives. */
export async function takeOverDeliveries(
  { database, log, now }: TakeOverOptions,
  claim: string,
): Promise<void> {
  const left = await listClaimed(database, claim);
  if (left.length === 0) return;
  await database.write(releaseDeliveries(left, claim, now()));
  log.info("deliveries of what has ended are taken over", { count: left.length });
}
