import type { Seal } from "../base/seal.ts";
import type { SendableDelivery } from "../store/deliveries.ts";

/** The secrets that sign a delivery now, the newest first: two for a day after a rotation. */
export function decryptSecrets(delivery: SendableDelivery, seal: Seal, nowMs: number): string[] {
  const { secret, oldSecret, oldSecretUntilMs, subscriptionId } = delivery;
  const old = oldSecret !== null && (oldSecretUntilMs ?? 0) > nowMs ? [oldSecret] : [];
  return [secret, ...old].map((stored) => seal.decrypt(stored, subscriptionId));
}
