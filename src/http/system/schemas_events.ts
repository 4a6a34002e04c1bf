import {
  COUNT,
  described,
  id,
  list,
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

const EVENT_NAME = {
  type: "string",
  pattern: "^[A-Za-z0-9._:-]{1,128}$",
};
const ENDPOINT = described("Where callbacks are sent.", { ...URI, maxLength: 2048 });
const SECRET = described("Signs callbacks (Standard Webhooks); shown here only.", {
  type: "string",
  pattern: "^whsec_",
});
const DELIVERY_STATUS = word("pending", "delivered", "failed", "cancelled");

/** What the consumer's own resources take and answer: subscriptions, deliveries, events, grants. */
export const EVENT_SCHEMAS: Schemas = {
  NewSubscription: strictObject({ event: EVENT_NAME, endpoint: ENDPOINT }),
  SubscriptionChange: strictObject({
    "endpoint?": ENDPOINT,
    "status?": word("active", "paused"),
  }),
  Subscription: object({
    id: id("s"),
    event: EVENT_NAME,
    endpoint: ENDPOINT,
    status: word("active", "paused", "disabled"),
    created_at: TIME,
    "disabled_reason?": TEXT,
  }),
  SubscriptionWithSecret: withMembers("Subscription", { secret: SECRET }),
  SubscriptionPage: pageOf("Subscription"),
  Delivery: object({
    id: described("The webhook-id of its callbacks.", id("d")),
    subscription: id("s"),
    event: described("The event's name.", EVENT_NAME),
    status: DELIVERY_STATUS,
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
  DeliveryId: object({ id: id("d") }),
  DeclaredEvent: object({
    name: EVENT_NAME,
    description: TEXT,
    "scope?": described("What a subscriber needs: names separated by spaces."),
  }),
  DeclaredEventPage: pageOf("DeclaredEvent"),
  ActingApp: object({ id: id("a"), name: TEXT, url: URI, scopes: list(TEXT) }),
  ActingAppPage: pageOf("ActingApp"),
  NewEvent: strictObject({
    name: described("Not under gatepost.", EVENT_NAME),
    data: described("Any JSON: the body of every callback.", {}),
    "subject?": described("A user's id or a client_id: its subscriptions alone are meant."),
  }),
  EventId: object({ id: id("e") }),
  Event: object({
    id: id("e"),
    name: EVENT_NAME,
    status: word("pending", "distributed"),
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
    id: id("d"),
    subscription: id("s"),
    event: described("The event's id.", id("e")),
    name: described("The event's name.", EVENT_NAME),
    status: DELIVERY_STATUS,
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
  DeliveryFailed: object({ delivery: id("d"), subscription: id("s"), event: EVENT_NAME }),
  SubscriptionDisabled: object({ subscription: id("s"), event: EVENT_NAME, reason: TEXT }),
};
