import type { Infer } from "../base/shape.ts";
import type { AttemptRecord, ManagedDelivery } from "../event/delivery_record.ts";
import type { ManagedSubscription, SubscriptionRecord } from "../event/subscription.ts";

/** A delivery as the backend shows it. */
export type Delivery = Infer<typeof ManagedDelivery>;
/** A delivery with its attempts; how responses began is for operators. */
export type Attempted<Of = Delivery> = Of & {
  readonly attempts: readonly (Infer<typeof AttemptRecord> & { readonly snippet?: string })[];
};
/** A subscription; operators see whose it is, too. */
export type Subscription =
  & Infer<typeof SubscriptionRecord>
  & Partial<Pick<Infer<typeof ManagedSubscription>, "principal" | "app">>;
