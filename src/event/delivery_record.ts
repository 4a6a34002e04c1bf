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

/** A delivery's id: the id of its event and the number of its subscription. */
export const DELIVERY_ID = matching(/^d[0-9a-z]+$/, "Must be an id.");

const between = (minimum: number, maximum: number) =>
  shown<number>({ type: "integer", minimum, maximum });

const DELIVERY = {
  id: described("The webhook-id of its callbacks.", DELIVERY_ID),
  subscription: idOf("s"),
  status: oneOf(...DELIVERY_STATUSES),
  attempt: described("Attempts so far; a resend by hand counts from 0 again.", COUNT),
  created_at: TIME,
  last_status: optional(described("The status of the last response.", between(100, 999))),
  last_error: optional(described("The kind of the last failure without a response.", TEXT)),
  next_attempt_at: optional(
    described("Absent during an attempt, and while paused without an end.", TIME),
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

/** An attempt as the subscription's owner sees it: only the status of the response. */
export const AttemptRecord = named("Attempt", record({
  time: TIME,
  attempt: described("The value of the header gatepost-attempt.", between(1, 4)),
  status: optional(described("The status of the response.", between(100, 999))),
  error: optional(described("The kind of failure, if there was no response.", TEXT)),
  duration_ms: COUNT,
}));

/** An event on its way to one subscription. */
export type Delivery = FieldsOf<Infer<typeof ManagedDelivery>>;

/** A delivery with a newly recorded attempt. */
export type ChangedDelivery = Pick<Delivery, "id" | "subscription">;

/** Called with changed deliveries, a few times a second. */
export type WatchDeliveries = (changed: readonly ChangedDelivery[]) => void;

/** An attempt as stored. */
export interface Attempt extends FieldsOf<Infer<typeof AttemptRecord>> {
  /** The beginning of the response's body; without a response, the code of the error. */
  readonly snippet: string | null;
}

const toRecord = recordOf(DeliveryRecord);

/** A delivery as the owner of its subscription sees it. */
export function toDeliveryRecord({ name, ...delivery }: Delivery): Infer<typeof DeliveryRecord> {
  return toRecord({ ...delivery, event: name });
}

export const toManagedDelivery = recordOf(ManagedDelivery);

export const toAttemptRecord = recordOf(AttemptRecord);
