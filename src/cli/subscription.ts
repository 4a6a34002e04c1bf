import type { Argument, Command } from "./command.ts";
import { column, itemPath, LIST_OPTIONS, printList } from "./listing.ts";
import { formatPairs } from "./table.ts";

const RESOURCE = "/backend/subscription";
const ID: Argument = { name: "ID", meaning: "the id that subscription list shows" };

/** The commands of `gatepost subscription`. */
export const SUBSCRIPTION_COMMANDS: readonly Command[] = [
  {
    words: ["subscription", "list"],
    purpose: "List everybody's subscriptions, newest first",
    arguments: [],
    options: LIST_OPTIONS,
    details: ["PRINCIPAL is the user or app whose it is, APP what it was made through."],
    examples: ["gatepost subscription list"],
    run: (context) =>
      printList(context, RESOURCE, {}, [
        column("ID", "id"),
        column("EVENT", "event", true),
        column("ENDPOINT", "endpoint", true),
        column("STATUS", "status"),
        column("PRINCIPAL", "principal"),
        column("APP", "app"),
        column("REASON", "disabled_reason", true),
      ]),
  },
  {
    words: ["subscription", "set"],
    purpose: "Pause, disable or activate a subscription",
    arguments: [ID],
    options: {
      status: { value: "STATUS", meaning: "active, paused or disabled", isRequired: true },
    },
    details: [
      "While it is paused its deliveries wait, without end; while it is disabled none are made, " +
        "and those that waited are cancelled. Its owner may activate it again, and sees why it " +
        "was disabled.",
    ],
    examples: ["gatepost subscription set s0mhc… --status disabled"],
    async run(context) {
      const { values } = context;
      const status = values.text("status");
      const backend = await context.openBackend();
      const path = itemPath(RESOURCE, values.argument("ID"));
      const answer = await backend.call("PATCH", path, JSON.stringify({ status }));
      context.print(answer, (subscription) =>
        `The subscription has been changed.\n\n${formatPairs([
          ["id", subscription["id"]],
          ["event", subscription["event"]],
          ["endpoint", subscription["endpoint"]],
          ["status", subscription["status"]],
        ])}`
      );
    },
  },
  {
    words: ["subscription", "delete"],
    purpose: "Remove a subscription, and cancel what it waits for",
    arguments: [ID],
    options: {},
    confirm: (values) => `Remove subscription ${values.argument("ID")} for good?`,
    details: [],
    examples: ["gatepost subscription delete s0mhc…"],
    async run(context) {
      const id = context.values.argument("ID");
      const backend = await context.openBackend();
      const answer = await backend.call("DELETE", itemPath(RESOURCE, id));
      context.print(answer, () => `Subscription ${id} has been removed.`);
    },
  },
];
