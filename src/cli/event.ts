import { isId } from "../base/id.ts";
import { parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import type { Command, CommandContext } from "./command.ts";
import { DELIVERY_COLUMNS } from "./delivery.ts";
import { UsageError } from "./failure.ts";
import { column, itemPath, LIST_OPTIONS, printList, printOne, withPage } from "./listing.ts";
import { formatPairs } from "./table.ts";
import { findUserId } from "./user.ts";

const RESOURCE = "/backend/event";

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
    details: [
      "The event is stored, and a running server delivers it; without one it waits.",
    ],
    examples: [
      "gatepost event dispatch order.created '{\"id\": 7}'",
      "gatepost event dispatch news '\"hello\"' --subject alice",
      "jq -c . order.json | gatepost event dispatch order.created -",
    ],
    run: dispatch,
  },
  {
    words: ["event", "show"],
    purpose: "Show an event with its data and its deliveries",
    arguments: [{ name: "ID", meaning: "the event, as event list shows it" }],
    options: LIST_OPTIONS,
    details: ["--limit and --cursor are for its deliveries."],
    examples: ["gatepost event show e0mhc…"],
    run: (context) =>
      printOne(context, withPage(itemPath(RESOURCE, context.values.argument("ID")), context), {
        deliveries: DELIVERY_COLUMNS.filter(({ title }) => title !== "EVENT"),
      }),
  },
  {
    words: ["event", "list"],
    purpose: "List events, newest first",
    arguments: [],
    options: {
      name: { value: "NAME", meaning: "only events of this name" },
      status: { value: "STATUS", meaning: "only pending or only distributed ones" },
      ...LIST_OPTIONS,
    },
    details: ["An event is pending until it has a delivery for each subscription."],
    examples: [
      "gatepost event list --status pending",
      "gatepost event list --name order.created --json",
    ],
    run: (context) => {
      const { values } = context;
      return printList(context, RESOURCE, {
        name: values.text("name"),
        status: values.text("status"),
      }, [
        column("ID", "id"),
        column("NAME", "name", true),
        column("STATUS", "status"),
        column("SUBJECT", "subject"),
        column("CREATED", "created_at"),
      ]);
    },
  },
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
  const answer = await backend.call("POST", RESOURCE, body);
  context.print(answer, (event) => `The event is stored.\n\n${formatPairs([["id", event["id"]]])}`);
}

/** What is no JSON is wrong usage, found before anything is opened; its text is not repeated. */
function checkJson(json: string): void {
  try {
    parseJson(Buffer.from(json));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const wrong = error.message.replace("The body", "the data").replace(/\.$/, "");
    throw new UsageError(wrong, { cause: error });
  }
}
