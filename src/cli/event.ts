import { EVENT_QUERY } from "../api/backend/event.ts";
import { isId } from "../base/id.ts";
import { parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import { LIST_OPTIONS, listCommand, type Resource, showCommand, showDone } from "./resource.ts";
import { findUserId } from "./user.ts";

const EVENT: Resource = {
  noun: "event",
  path: "/backend/event",
  argument: { name: "ID", meaning: "the event, as event list shows it" },
  columns: ["id", "name*", "status", "subject", "created_at"],
  shown: ["id"],
};

/** The commands of `gatepost event`. */
export const EVENT_COMMANDS: readonly Command[] = [
  {
    words: ["event", "dispatch"],
    purpose: "Publish an event to its subscribers",
    arguments: [
      { name: "NAME", meaning: "1 to 128 of A-Z a-z 0-9 . _ : -" },
      { name: "JSON", meaning: "the data that subscribers get; - reads it from standard input" },
    ],
    options: {
      subject: {
        value: "WHO",
        meaning: "a user's name or id, or a client_id: deliver to their subscriptions alone",
      },
    },
    details: ["The event is stored, and a running server delivers it; without one it waits."],
    examples: [
      "gatepost event dispatch order.created '{\"id\": 7}'",
      "gatepost event dispatch news '\"hello\"' --subject alice",
      "jq -c . order.json | gatepost event dispatch order.created -",
    ],
    run: dispatch,
  },
  showCommand(EVENT, {
    purpose: "Show an event with its data and its deliveries",
    details: ["--limit and --cursor are for its deliveries."],
    examples: ["gatepost event show e0mhc…"],
    options: LIST_OPTIONS,
  }, { deliveries: ["id", "status", "subscription", "created_at"] }),
  listCommand(EVENT, {
    purpose: "List events, newest first",
    details: ["An event is pending until it has a delivery for each subscription."],
    examples: [
      "gatepost event list --status pending",
      "gatepost event list --name order.created --json",
    ],
  }, EVENT_QUERY, {
    name: { meaning: "only events of this name" },
    status: { meaning: "only pending or only distributed ones" },
  }),
];

async function dispatch(context: CommandContext): Promise<void> {
  const { values, terminal } = context;
  const given = values.argument("JSON");
  const json = given === "-" ? await terminal.readStdin() : given;
  checkJson(json);
  const who = values.text("subject");
  const backend = await context.openBackend();
  const isUserName = who !== undefined && !isId("u", who) && !isId("a", who);
  const subject = isUserName ? await findUserId(backend, who) : who;
  // The text itself: to parse and write it again would make null of a number past a double's range.
  const head = JSON.stringify({ name: values.argument("NAME"), subject });
  const body = `${head.slice(0, -1)},"data":${json}}`;
  const response = await backend.call("POST", EVENT.path, body);
  context.print(response, (event) => showDone(EVENT, "The event is stored.", event));
}

/** Other text than JSON is wrong usage, found before anything is opened, and not repeated. */
function checkJson(json: string): void {
  try {
    parseJson(Buffer.from(json));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const wrong = error.message.replace("The body", "the data").replace(/\.$/, "");
    throw new UsageError(wrong, { cause: error });
  }
}
