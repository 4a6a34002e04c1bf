import { idOf } from "../base/id.ts";
import {
  type Check,
  described,
  type Infer,
  named,
  object,
  oneOf,
  optional,
  record,
  text,
  TEXT,
  withMembers,
} from "../base/shape.ts";
import { TIME, toTime } from "../base/time.ts";
import { EVENT_NAME } from "./event.ts";

/** How many subscriptions one principal may have. */
export const SUBSCRIPTION_LIMIT = 100;

const MAX_ENDPOINT_LENGTH = 2048;
const ENDPOINT_SCHEMA = { format: "uri", pattern: "^https?://", maxLength: MAX_ENDPOINT_LENGTH };

/** Says why a well-formed endpoint is never called, or undefined. */
export type RefuseEndpoint = (url: URL) => string | undefined;

function endpoint(refuse: RefuseEndpoint) {
  return described("Where callbacks are sent.", text(checkEndpoint(refuse), ENDPOINT_SCHEMA));
}

function checkEndpoint(refuse: RefuseEndpoint): Check {
  return (text) => {
    if (text.length > MAX_ENDPOINT_LENGTH) return `Must be at most ${MAX_ENDPOINT_LENGTH} characters.`;
    // URL forgives spaces around, tabs inside, backslashes and slashes too many; what is sent should
    // be what is meant.
    const isPlain = /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(text) && !/\p{Cc}/u.test(text);
    const url = isPlain ? URL.parse(text) : null;
    if (!url) return "Must be an absolute http or https URL.";
    if (url.username !== "" || url.password !== "") return "Must not contain credentials.";
    if (text.includes("#")) return "Must not contain a fragment.";
    return refuse(url);
  };
}

/** What makes a subscription. */
export function newSubscription(refuse: RefuseEndpoint) {
  return named("NewSubscription", object({ event: EVENT_NAME, endpoint: endpoint(refuse) }));
}

/** What of a subscription its owner may change. */
export function subscriptionChange(refuse: RefuseEndpoint) {
  return named("SubscriptionChange", object({
    endpoint: optional(endpoint(refuse)),
    status: optional(oneOf("active", "paused")),
  }));
}

/** What of anybody's subscription the backend may change: it may also disable it. */
export function managedSubscriptionChange(refuse: RefuseEndpoint) {
  return named("ManagedSubscriptionChange", object({
    endpoint: optional(endpoint(refuse)),
    status: optional(STATUS),
  }));
}

const STATUS = oneOf("active", "paused", "disabled");

/** A subscription as its owner sees it. */
export const SubscriptionRecord = named("Subscription", record({
  id: idOf("s"),
  event: EVENT_NAME,
  endpoint: endpoint(() => undefined),
  status: STATUS,
  created_at: TIME,
  disabled_reason: optional(TEXT),
}));

/** A subscription as the backend shows it. */
export const ManagedSubscription = named(
  "ManagedSubscription",
  withMembers(SubscriptionRecord, { principal: TEXT, app: TEXT }),
);

/** What of a subscription may change, but for its end. */
export type SubscriptionChange = Infer<ReturnType<typeof subscriptionChange>>;
export type ManagedChange = Infer<ReturnType<typeof managedSubscriptionChange>>;

/** One principal's wish to be called back on one event. */
export interface Subscription extends Pick<
  Infer<typeof ManagedSubscription>,
  "id" | "principal" | "app" | "event" | "endpoint" | "status"
> {
  /** The order in which subscriptions were made; never reused. */
  readonly seq: number;
  readonly disabledReason: string | null;
  readonly createdAtMs: number;
}

/** A subscription as its owner sees it. */
export function toSubscriptionRecord(
  { id, event, endpoint, status, createdAtMs, disabledReason }: Omit<Subscription, "seq">,
): Infer<typeof SubscriptionRecord> {
  return {
    id,
    event,
    endpoint,
    status,
    created_at: toTime(createdAtMs),
    ...(disabledReason !== null && { disabled_reason: disabledReason }),
  };
}

/** A subscription as the backend shows it: `app` is the `client_id` that made it, or `login`. */
export function toManagedSubscription(
  subscription: Subscription,
): Infer<typeof ManagedSubscription> {
  const { id, ...rest } = toSubscriptionRecord(subscription);
  return { id, principal: subscription.principal, app: subscription.app, ...rest };
}
