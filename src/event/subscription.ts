import { type Check, openFields } from "../base/fields.ts";
import { checkEventName } from "./event.ts";

/** One principal's wish to be called back on one event. */
export interface Subscription {
  /** The order in which subscriptions were made; never reused. */
  readonly seq: number;
  /** Starts with `s`. */
  readonly id: string;
  readonly principal: string;
  /** The `client_id` of the token that made it, or `login`. */
  readonly app: string;
  readonly event: string;
  readonly endpoint: string;
  readonly status: "active" | "paused" | "disabled";
  readonly disabledReason: string | null;
  readonly createdAtMs: number;
}

/** What makes a subscription. */
export interface NewSubscription {
  readonly event: string;
  readonly endpoint: string;
}

/** What of a subscription may change. */
export interface SubscriptionChange {
  readonly endpoint: string | undefined;
  readonly status: "active" | "paused" | undefined;
}

/** How many subscriptions one principal may have. */
export const SUBSCRIPTION_LIMIT = 100;

/** Characters of a subscription's endpoint. */
export const MAX_ENDPOINT_LENGTH = 2048;

/** Reads the JSON that subscribes; `refuse` says why a well-formed endpoint is not called. */
export function parseNewSubscription(
  value: unknown,
  refuse: (url: URL) => string | undefined,
): NewSubscription {
  const fields = openFields(value);
  const subscription = {
    event: fields.requiredText("event", checkEventName),
    endpoint: fields.requiredText("endpoint", checkEndpoint(refuse)),
  };
  fields.finish("subscription");
  return subscription;
}

/** Reads the JSON that changes a subscription of one's own. */
export function parseSubscriptionChange(
  value: unknown,
  refuse: (url: URL) => string | undefined,
): SubscriptionChange {
  return parseChange(value, refuse, ["active", "paused"]);
}

/** Reads the JSON that changes anybody's subscription, which may also disable it. */
export function parseManagedSubscriptionChange(
  value: unknown,
  refuse: (url: URL) => string | undefined,
): Omit<SubscriptionChange, "status"> & { readonly status: Subscription["status"] | undefined } {
  return parseChange(value, refuse, ["active", "paused", "disabled"]);
}

function parseChange<Status extends string>(
  value: unknown,
  refuse: (url: URL) => string | undefined,
  statuses: readonly Status[],
): { endpoint: string | undefined; status: Status | undefined } {
  const fields = openFields(value);
  const change = {
    endpoint: fields.text("endpoint", checkEndpoint(refuse)),
    status: fields.word("status", statuses),
  };
  fields.finish("change of a subscription");
  return change;
}

function checkEndpoint(refuse: (url: URL) => string | undefined): Check {
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
