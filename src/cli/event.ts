import { pagination } from "../api/pagination.ts";
import { parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import { NewEvent } from "../event/event.ts";
import { EVENT_LIST } from "../store/events.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";
import { findPrincipalId } from "./user.ts";

const EVENT: Resource = {
  noun: "event",
  argument: { name: "ID", meaning: "its id, as event list shows it", example: "e0mhc…" },
  columns: ["id", "name*", "status", "subject", "created_at"],
  shown: ["id"],
};

const WHO = { value: "WHO", find: findPrincipalId };

export const EVENT_COMMANDS: readonly Command[] = [
  sendCommand(EVENT, "dispatch", "Publish an event to its subscribers", {
    details: ["The event is stored; a running server delivers it. Without one, it waits."],
    examples: [
      "gatepost event dispatch order.created '{\"id\": 7}'",
      "gatepost event dispatch news '\"hello\"' --subject alice",
      "jq -c . order.json | gatepost event dispatch order.created -",
    ],
    body: NewEvent,
    members: {
      name: { argument: "NAME", meaning: "1 to 128 of A-Z a-z 0-9 . _ : -" },
      data: {
        argument: "JSON",
        meaning: "the data that subscribers get; - reads it from standard input",
        read: (values, context) => readJson(values.argument("JSON"), "the data", context),
      },
      subject: {
        ...WHO,
        meaning: "only subscribers with this user name, user id or client_id get it",
      },
      key: { meaning: "dispatch nothing if an event with this name and key is stored" },
    },
    done: () => "The event is stored.",
  }),
  showCommand(EVENT, "Show an event with its data and its deliveries", {
    details: ["--limit and --cursor apply to its deliveries."],
    query: pagination(),
    tables: { deliveries: ["id", "status", "subscription", "created_at"] },
  }),
  listCommand(EVENT, "List events, newest first", {
    details: ["An event is pending until it has a delivery for each subscription."],
    examples: [
      "gatepost event list --status pending",
      "gatepost event list --name order.created --json",
    ],
    query: EVENT_LIST.filters,
    members: { subject: WHO },
  }),
];

/** Parses JSON as given or, for `-`, from stdin. Other text is wrong usage and is not repeated. */
export async function readJson(given: string, what: string, { terminal }: CommandContext) {
  const json = given === "-" ? await terminal.readStdin() : given;
  try {
    return parseJson(Buffer.from(json), { exactIntegers: true });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const wrong = error.message.replace("The body", what).replace(/\.$/, "");
    throw new UsageError(wrong, { cause: error });
  }
}
