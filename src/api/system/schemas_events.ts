import { EVENT_NAME, OWN_PREFIX, PRINCIPAL_ID } from "../../event/event.ts";
import { MAX_ENDPOINT_LENGTH } from "../../event/subscription.ts";
import { DELIVERY_STATUSES } from "../../store/delivery_lists.ts";
import { EVENT_STATUSES } from "../../store/events.ts";
import {
  COUNT,
  described,
  id,
  list,
  matching,
  object,
  pageOf,
  ref,
  type Schemas,
  strictObject,
  TEXT,
  TIME,
  URI,
  withMembers,
  word,
} from "./json_schema.ts";

const NAME = matching(EVENT_NAME);
const ENDPOINT = described("Where callbacks are sent.", {
  ...URI,
  pattern: "^https?://",
  maxLength: MAX_ENDPOINT_LENGTH,
});
/** An event's, and which subscription's behind it. */
const DELIVERY_ID = matching(/^d[0-9a-z]+$/);
const SECRET = described("Signs callbacks (Standard Webhooks); shown here only.", {
  type: "string",
  pattern: "^whsec_",
});
const STATUS = word(...DELIVERY_STATUSES);

/** What the consumer's own resources take and answer: subscriptions, deliveries, events, grants. */
export const EVENT_SCHEMAS: Schemas = {
  NewSubscription: strictObject({ event: NAME, endpoint: ENDPOINT }),
  SubscriptionChange: strictObject({
    "endpoint?": ENDPOINT,
    "status?": word("active", "paused"),
  }),
  Subscription: object({
    id: id("s"),
    event: NAME,
    endpoint: ENDPOINT,
    status: word("active", "paused", "disabled"),
    created_at: TIME,
    "disabled_reason?": TEXT,
  }),
  SubscriptionWithSecret: withMembers("Subscription", { secret: SECRET }),
  SubscriptionPage: pageOf("Subscription"),
  Delivery: object({
    id: described("The webhook-id of its callbacks.", DELIVERY_ID),
    subscription: id("s"),
    event: described("The event's name.", NAME),
    status: STATUS,
    attempt: described("Attempts so far, since it was (re)sent by hand.", COUNT),
    created_at: TIME,
    "next_attempt_at?": TIME,
    "finished_at?": TIME,
  }),
  DeliveryPage: pageOf("Delivery"),
  Attempt: object({
    time: TIME,
    attempt: described("As in gatepost-attempt.", { type: "integer", minimum: 1, maximum: 4 }),
    "status?": described("Of the answer.", { type: "integer", minimum: 100, maximum: 999 }),
    "error?": described("The kind of failure, where there was no answer."),
    duration_ms: COUNT,
  }),
  DeliveryWithAttempts: withMembers("Delivery", { attempts: list(ref("Attempt")) }),
  DeliveryId: object({ id: DELIVERY_ID }),
  DeclaredEvent: object({
    name: NAME,
    description: TEXT,
    "scope?": described("What a subscriber needs: names separated by spaces."),
  }),
  DeclaredEventPage: pageOf("DeclaredEvent"),
  ActingApp: object({ id: id("a"), name: TEXT, url: URI, scopes: list(TEXT) }),
  ActingAppPage: pageOf("ActingApp"),
  NewEvent: strictObject({
    name: described(`Not under ${OWN_PREFIX}`, {
      ...NAME,
      not: { pattern: `^${OWN_PREFIX.replace(".", "[.]")}` },
    }),
    data: described("Any JSON: the body of every callback.", {}),
    "subject?": described(
      "A user's id or a client_id: its subscriptions alone are meant.",
      matching(PRINCIPAL_ID),
    ),
  }),
  EventId: object({ id: id("e") }),
  Event: object({
    id: id("e"),
    name: NAME,
    status: word(...EVENT_STATUSES),
    "subject?": TEXT,
    "scope?": described("What a subscriber needs: names separated by spaces."),
    created_at: TIME,
  }),
  EventPage: pageOf("Event"),
  EventWithDeliveries: withMembers("Event", {
    data: {},
    deliveries: list(ref("ManagedDelivery")),
    next_cursor: described("Send it as cursor for more of the deliveries.", {
      anyOf: [TEXT, { type: "null" }],
    }),
  }),
  ManagedDelivery: object({
    id: DELIVERY_ID,
    subscription: id("s"),
    event: described("The event's id.", id("e")),
    name: described("The event's name.", NAME),
    status: STATUS,
    attempt: COUNT,
    created_at: TIME,
    "next_attempt_at?": TIME,
    "finished_at?": TIME,
  }),
  ManagedDeliveryPage: pageOf("ManagedDelivery"),
  ManagedDeliveryWithAttempts: withMembers("ManagedDelivery", {
    attempts: list(withMembers("Attempt", {
      "snippet?": described("How the answer began: 4 KiB at most."),
    })),
  }),
  Resend: strictObject({
    status: { const: "failed" },
    "since?": described("Of the event's dispatch.", TIME),
    "until?": TIME,
    "subscription?": id("s"),
  }),
  ResendCount: object({ count: COUNT }),
  ManagedSubscription: withMembers("Subscription", { principal: TEXT, app: TEXT }),
  ManagedSubscriptionPage: pageOf("ManagedSubscription"),
  ManagedSubscriptionChange: strictObject({
    "endpoint?": ENDPOINT,
    "status?": word("active", "paused", "disabled"),
  }),
  DeliveryFailed: object({ delivery: DELIVERY_ID, subscription: id("s"), event: NAME }),
  SubscriptionDisabled: object({ subscription: id("s"), event: NAME, reason: TEXT }),
};
