import { SORT } from "../api/subscription.ts";
import { ManagedSubscriptionChange } from "../event/subscription.ts";
import { SUBSCRIPTION_LIST } from "../store/subscriptions.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";
import { findPrincipalId } from "./user.ts";

const SUBSCRIPTION: Resource = {
  noun: "subscription",
  argument: { name: "ID", meaning: "its id, as subscription list shows it", example: "s0mhc…" },
  columns: ["id", "event*", "endpoint*", "status", "principal", "app", "disabled_reason*=reason"],
  shown: ["id", "event", "endpoint", "status"],
};

export const SUBSCRIPTION_COMMANDS: readonly Command[] = [
  listCommand(SUBSCRIPTION, "List all subscriptions, newest first", {
    query: { ...SUBSCRIPTION_LIST.filters, sort: SORT },
    members: { owner: { value: "WHO", find: findPrincipalId } },
    details: ["PRINCIPAL is the user or app that owns it; APP is the app that created it."],
  }),
  showCommand(SUBSCRIPTION, "Show a subscription"),
  showCommand(SUBSCRIPTION, "Show the delivery results of a subscription, by day", {
    below: "/health",
    tables: { days: ["day", "ok", "bad", "failed"], answers: ["answer", "count"] },
  }),
  sendCommand(SUBSCRIPTION, "set", "Pause, disable or activate a subscription", {
    details: [
      "While it is paused, its deliveries wait without a time limit. While it is disabled, no " +
        "deliveries are made, and those that waited are cancelled. Its owner sees why it was " +
        "disabled, and may activate it again.",
    ],
    examples: [
      "gatepost subscription set s0mhc… --status disabled",
      "gatepost subscription set s0mhc… --paused-until 2030-01-31T12:00:00Z",
    ],
    body: ManagedSubscriptionChange,
    members: { endpoint: null },
  }),
  sendCommand(SUBSCRIPTION, "delete", "Delete a subscription, and cancel its pending deliveries"),
];
