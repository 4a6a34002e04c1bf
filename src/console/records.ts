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

/** Something that is wrong, or is left to be set before others use the service. */
export interface Problem extends Readonly<Record<"id" | "kind" | "title" | "detail", string>> {
  readonly since: string | null;
  readonly link?: string;
  readonly muted_until?: string;
}

/** Whether it is left to be set: its place is among the settings. */
export const isSetting = ({ kind }: Problem) => kind === "setting";

/** Whether it is to be shown as wrong now. */
export const isOpen = (problem: Problem) => !isSetting(problem) && !problem.muted_until;
