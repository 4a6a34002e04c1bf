import type { Health as HealthRecord } from "../api/backend/series.ts";
import type { Infer } from "../base/shape.ts";
import type { AttemptRecord, ManagedDelivery } from "../event/delivery_record.ts";
import type { DeclaredEventRecord } from "../event/event.ts";
import type { ManagedSubscription, SubscriptionRecord } from "../event/subscription.ts";

/** An event that a module declares. */
export type DeclaredEvent = Infer<typeof DeclaredEventRecord>;
/** How a subscription has done. */
export type Health = Infer<typeof HealthRecord>;

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
