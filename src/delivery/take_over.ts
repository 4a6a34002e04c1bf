import { releaseCronjobs } from "../store/cronjobs.ts";
import { claimsOf } from "../store/deliveries.ts";
import type { DistributorOptions } from "./distributor.ts";

type TakeOverOptions = Pick<DistributorOptions, "database" | "log" | "now">;

/** Releases all claims of a process that has ended, without waiting for their leases. */
export async function takeOver(options: TakeOverOptions, claim: string): Promise<void> {
  await takeOverDeliveries(options, claim);
  await options.database.write([releaseCronjobs(claim)]);
}

/** Releases its deliveries alone: the delivery thread may have died while its process lives. */
export async function takeOverDeliveries(
  { database, log, now }: TakeOverOptions,
  claim: string,
  leases?: readonly number[],
): Promise<void> {
  const claims = claimsOf(database, claim);
  const left = await claims.list(leases);
  if (left.length === 0) return;
  await database.write(claims.release(left, now()));
  log.info("deliveries that nobody sends are released", { count: left.length });
}
