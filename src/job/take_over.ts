import type { Log } from "../base/log.ts";
import { releaseCronjobs } from "../store/cronjobs.ts";
import type { Database } from "../store/database.ts";
import { listClaimed, releaseDeliveries } from "../store/deliveries.ts";

/** Gives back what a process that has ended had claimed, without waiting for its leases. */
export async function takeOver(
  { database, log, now }: { database: Database; log: Log; now: () => number },
  claim: string,
): Promise<void> {
  const left = await listClaimed(database, claim);
  await database.write([...releaseDeliveries(left, claim, now()), releaseCronjobs(claim)]);
  if (left.length === 0) return;
  log.info("deliveries of a process that has ended are taken over", { count: left.length });
}
