import { type FieldsOf, recordOf } from "../base/fields.ts";
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
import { TIME, TIME_MS } from "../base/time.ts";
import { EVENT_NAME } from "./event.ts";

/** How many subscriptions one principal may have. */
export const SUBSCRIPTION_LIMIT = 100;

const MAX_LENGTH = 2048;

const checkEndpoint: Check = (text) => {
  if (text.length > MAX_LENGTH) return `Must be at most ${MAX_LENGTH} characters.`;
  // URL would accept and change spaces around, tabs inside, backslashes and superfluous slashes.
  // A lone surrogate could not be stored.
  const isPlain = /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(text) && !/[\p{Cc}\p{Cs}]/u.test(text);
  if (!isPlain || !URL.canParse(text)) return "Must be an absolute http or https URL.";
  if (/^https?:\/\/[^/?#]*@/i.test(text)) return "Must not contain credentials.";
  return text.includes("#") ? "Must not contain a fragment." : undefined;
};

const ENDPOINT = described("Where callbacks are sent.", text(checkEndpoint, {
  // Not of format uri, which is ASCII (RFC 3986): hosts and paths may be international.
  pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\/#][^\s\\#]*$`,
  maxLength: MAX_LENGTH,
}));
const STATUS = oneOf("active", "paused", "disabled");

export const NewSubscription = named(
  "NewSubscription",
  object({ event: EVENT_NAME, endpoint: ENDPOINT }),
);

/** A change of a subscription by its owner. */
export const SubscriptionChange = named("SubscriptionChange", object({
  endpoint: optional(ENDPOINT),
  status: optional(oneOf("active", "paused")),
  paused_until: optional(described("Pauses the subscription until this time.", TIME_MS)),
}));

/** A change of any subscription by the backend, which may also disable it. */
export const ManagedSubscriptionChange = named(
  "ManagedSubscriptionChange",
  object({ ...SubscriptionChange.members, status: optional(STATUS) }),
);

export const SubscriptionRecord = named("Subscription", record({
  id: idOf("s"),
  event: EVENT_NAME,
  endpoint: ENDPOINT,
  status: STATUS,
  created_at: TIME,
  disabled_reason: optional(TEXT),
  failing_since: optional(described("The time since which no callback has succeeded.", TIME)),
  paused_until: optional(described("The time at which it becomes active by itself.", TIME)),
}));

export const ManagedSubscription = named(
  "ManagedSubscription",
  withMembers(SubscriptionRecord, { principal: TEXT, app: TEXT }),
);

/** A principal's subscription to one event, with the address of its callbacks. */
export interface Subscription extends FieldsOf<Infer<typeof ManagedSubscription>> {
  /** The order in which subscriptions were made; never reused. */
  readonly seq: number;
}

/** A subscription as its owner sees it. */
export const toSubscriptionRecord = recordOf(SubscriptionRecord);

/** A subscription as the backend shows it; `app` is the `client_id` that made it, or `login`. */
export function toManagedSubscription({ principal, app, ...own }: Subscription) {
  const { id, ...rest } = toSubscriptionRecord(own);
  return { id, principal, app, ...rest };
}
