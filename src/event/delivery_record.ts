import { type FieldsOf, recordOf } from "../base/fields.ts";
import { idOf } from "../base/id.ts";
import {
  COUNT,
  described,
  type Infer,
  matching,
  named,
  oneOf,
  optional,
  record,
  shown,
  TEXT,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { EVENT_NAME } from "./event.ts";

export const DELIVERY_STATUSES = ["pending", "delivered", "failed", "cancelled"] as const;

/** A delivery's id: that of its event, and the number of its subscription. */
export const DELIVERY_ID = matching(/^d[0-9a-z]+$/, "Must be an id.");

const between = (minimum: number, maximum: number) =>
  shown<number>({ type: "integer", minimum, maximum });

const DELIVERY = {
  id: described("The webhook-id of its callbacks.", DELIVERY_ID),
  subscription: idOf("s"),
  status: oneOf(...DELIVERY_STATUSES),
  attempt: described("Attempts so far, since it was (re)sent by hand.", COUNT),
  created_at: TIME,
  last_status: optional(described("Of the last response.", between(100, 999))),
  last_error: optional(described("The kind of the last failure without a response.", TEXT)),
  next_attempt_at: optional(
    described("None while an attempt is made, and while paused without an end.", TIME),
  ),
  finished_at: optional(TIME),
} as const;
const NAME = described("The event's name.", EVENT_NAME);

export const DeliveryRecord = named("Delivery", record({ ...DELIVERY, event: NAME }));

export const ManagedDelivery = named("ManagedDelivery", record({
  ...DELIVERY,
  event: described("The event's id.", idOf("e")),
  name: NAME,
}));

/** An attempt as the owner of the subscription sees it: nothing of the response but its status. */
export const AttemptRecord = named("Attempt", record({
  time: TIME,
  attempt: described("As in gatepost-attempt.", between(1, 4)),
  status: optional(described("Of the response.", between(100, 999))),
  error: optional(described("The kind of failure, where there was no response.", TEXT)),
  duration_ms: COUNT,
}));

/** An event on its way to one subscription; no next attempt while one is being made. */
export type Delivery = FieldsOf<Infer<typeof ManagedDelivery>>;

/** A delivery of which an attempt has been recorded. */
export type ChangedDelivery = Pick<Delivery, "id" | "subscription">;

/** Gets such deliveries, a few times a second. */
export type WatchDeliveries = (changed: readonly ChangedDelivery[]) => void;

/** An attempt as it is stored. */
export interface Attempt extends FieldsOf<Infer<typeof AttemptRecord>> {
  /** How the response began, or the code of the error in place of one. */
  readonly snippet: string | null;
}

const toRecord = recordOf(DeliveryRecord);

/** A delivery as the owner of its subscription sees it. */
export function toDeliveryRecord({ name, ...delivery }: Delivery): Infer<typeof DeliveryRecord> {
  return toRecord({ ...delivery, event: name });
}

export const toManagedDelivery = recordOf(ManagedDelivery);

export const toAttemptRecord = recordOf(AttemptRecord);
