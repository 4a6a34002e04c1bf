import type { Health as HealthRecord } from "../api/backend/series.ts";
import type { Infer } from "../base/shape.ts";
import type { AttemptRecord, ManagedDelivery } from "../event/delivery_record.ts";
import type { DeclaredEventRecord } from "../event/event.ts";
import type { ManagedSubscription, SubscriptionRecord } from "../event/subscription.ts";

/** An event that a module declares. */
export type DeclaredEvent = Infer<typeof DeclaredEventRecord>;
/** The health of a subscription. */
export type Health = Infer<typeof HealthRecord>;

/** A delivery as the backend shows it. */
export type Delivery = Infer<typeof ManagedDelivery>;
/** A delivery with its attempts; only operators get the beginnings of responses. */
export type Attempted<Of = Delivery> = Of & {
  readonly attempts: readonly (Infer<typeof AttemptRecord> & { readonly snippet?: string })[];
};
/** A subscription; operators also see its owner and app. */
export type Subscription =
  & Infer<typeof SubscriptionRecord>
  & Partial<Pick<Infer<typeof ManagedSubscription>, "principal" | "app">>;
