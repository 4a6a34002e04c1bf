import { releaseCronjobs } from "../store/cronjobs.ts";
import { listClaimed, releaseDeliveries } from "../store/deliveries.ts";
import type { DistributorOptions } from "./distributor.ts";

type TakeOverOptions = Pick<DistributorOptions, "database" | "log" | "now">;

/** Releases what a process that has ended had claimed, without waiting for its leases. */
export async function takeOver(options: TakeOverOptions, claim: string): Promise<void> {
  await takeOverDeliveries(options, claim);
  await options.database.write([releaseCronjobs(claim)]);
}

/** The same for deliveries alone, whose thread may have died while its process lives. */
export async function takeOverDeliveries(
  { database, log, now }: TakeOverOptions,
  claim: string,
): Promise<void> {
  const left = await listClaimed(database, claim);
  if (left.length === 0) return;
  await database.write(releaseDeliveries(left, claim, now()));
  log.info("deliveries of what has ended are taken over", { count: left.length });
}
