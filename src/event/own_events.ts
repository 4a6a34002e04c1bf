import { idOf } from "../base/id.ts";
import { named, record, TEXT } from "../base/shape.ts";
import { DELIVERY_ID } from "./delivery_record.ts";
import { type DeclaredEvent, EVENT_NAME } from "./event.ts";

/** The events of the service itself: anybody may know of them. */
export const OWN_EVENTS: readonly DeclaredEvent[] = [
  {
    name: "gatepost.delivery.failed",
    description: "A delivery has failed after its last resend",
    scope: [],
    data: named("DeliveryFailed", record({
      delivery: DELIVERY_ID,
      subscription: idOf("s"),
      event: EVENT_NAME,
    })),
  },
  {
    name: "gatepost.subscription.disabled",
    description: "A subscription has been disabled",
    scope: [],
    data: named("SubscriptionDisabled", record({
      subscription: idOf("s"),
      event: EVENT_NAME,
      reason: TEXT,
    })),
  },
];
