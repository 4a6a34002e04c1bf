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
  // URL forgives spaces around, tabs inside, backslashes and slashes too many; what is sent should
  // be what is meant. Half of a character could not be stored.
  const isPlain = /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(text) && !/[\p{Cc}\p{Cs}]/u.test(text);
  if (!isPlain || !URL.canParse(text)) return "Must be an absolute http or https URL.";
  if (/^https?:\/\/[^/?#]*@/i.test(text)) return "Must not contain credentials.";
  return text.includes("#") ? "Must not contain a fragment." : undefined;
};

const ENDPOINT = described("Where callbacks are sent.", text(checkEndpoint, {
  format: "uri",
  pattern: "^[Hh][Tt][Tt][Pp][Ss]?://",
  maxLength: MAX_LENGTH,
}));
const STATUS = oneOf("active", "paused", "disabled");

export const NewSubscription = named(
  "NewSubscription",
  object({ event: EVENT_NAME, endpoint: ENDPOINT }),
);

/** What of a subscription its owner may change. */
export const SubscriptionChange = named("SubscriptionChange", object({
  endpoint: optional(ENDPOINT),
  status: optional(oneOf("active", "paused")),
  paused_until: optional(described("Pauses it until then.", TIME_MS)),
}));

/** What of anybody's subscription the backend may change: it may also disable it. */
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
  failing_since: optional(described("Since when no callback has succeeded.", TIME)),
  paused_until: optional(described("When it becomes active by itself.", TIME)),
}));

export const ManagedSubscription = named(
  "ManagedSubscription",
  withMembers(SubscriptionRecord, { principal: TEXT, app: TEXT }),
);

/** One principal's wish to be called back on one event. */
export interface Subscription extends FieldsOf<Infer<typeof ManagedSubscription>> {
  /** The order in which subscriptions were made; never reused. */
  readonly seq: number;
}

/** A subscription as its owner sees it. */
export const toSubscriptionRecord = recordOf(SubscriptionRecord);

/** A subscription as the backend shows it: `app` is the `client_id` that made it, or `login`. */
export function toManagedSubscription({ principal, app, ...own }: Subscription) {
  const { id, ...rest } = toSubscriptionRecord(own);
  return { id, principal, app, ...rest };
}
