import { NewResend } from "../api/resend.ts";
import { DELIVERY_LIST } from "../store/delivery_lists.ts";
import { RESEND_LIST } from "../store/resends.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./failure.ts";
import {
  givenMembers,
  itemPath,
  listCommand,
  type Resource,
  sendCommand,
  showCommand,
} from "./resource.ts";

const DELIVERY: Resource = {
  noun: "delivery",
  argument: { name: "ID", meaning: "its id, as delivery list shows it", example: "d0mhc…" },
  columns: [
    "id", "name*=event", "status", "subscription", "created_at",
    "last_status=response", "last_error=error",
  ],
};
const RESEND: Resource = {
  noun: "resend",
  argument: { name: "ID", meaning: "its id, as resend list shows it", example: "w0mhc…" },
  columns: ["id", "state", "status", "subscription", "count", "done", "created_at", "actor"],
};
const EVENT = { value: "ID" };
const SELECTION = givenMembers(NewResend.members, {
  event: EVENT,
  status: {
    meaning: "failed, delivered, cancelled or pending (waiting for a retry)",
    also: { failed: { meaning: "every failed delivery; filters restrict that" } },
    read: (values) => values.flag("failed") ? "failed" : values.text("status"),
    isRequired: false,
  },
  first: { flag: "one", meaning: "send only the first of them, as a trial" },
});

/** The commands of `gatepost delivery` and `gatepost resend`. */
export const DELIVERY_COMMANDS: readonly Command[] = [
  listCommand(DELIVERY, "List deliveries, newest first", {
    examples: ["gatepost delivery list --status failed"],
    query: DELIVERY_LIST.filters,
    members: { event: EVENT },
  }),
  showCommand(DELIVERY, "Show a delivery with its attempts", {
    details: ["RESPONSE is the beginning of the response to an attempt."],
    tables: {
      attempts: ["time", "attempt", "status", "error", "duration_ms=ms", "snippet*=response"],
    },
  }),
  {
    words: ["delivery", "resend"],
    purpose: "Resend one delivery, or many",
    arguments: [{ name: "ID", meaning: "its id; leave it out for many", isOptional: true }],
    options: SELECTION.options,
    details: [
      "Each delivery is sent again under its old webhook-id; its attempts are counted from 1 " +
        "again. A running server sends them; without one they wait. For many, `resend list` " +
        "shows the progress, and `resend stop ID` stops the rest.",
    ],
    examples: [
      "gatepost delivery resend --failed",
      "gatepost delivery resend --failed --since 2030-01-31T12:00:00Z --dry-run",
      "gatepost delivery resend d0mhc…",
    ],
    run: resend,
  },
  listCommand(RESEND, "List resends, newest first", { query: RESEND_LIST.filters }),
  showCommand(RESEND, "Show the progress of a resend"),
  sendCommand(RESEND, "stop", "Stop a resend before the rest is sent", {
    method: "DELETE",
    confirm: (id) => `Stop resend ${id}?`,
    done: (id) => `Resend ${id} has been stopped.`,
  }),
];

async function resend(context: CommandContext): Promise<void> {
  const id = context.values.argument("ID");
  const given = await SELECTION.read(context);
  const { status, ...filters } = given;
  const isOne = id !== "";
  const isMany = Object.keys(filters).length > 0 || context.values.flag("failed");
  const isTwice = context.values.flag("failed") && context.values.text("status") !== undefined;
  if (isTwice || (isOne ? isMany : status === undefined)) {
    throw new UsageError("delivery resend needs either ID, or --failed or --status, with filters");
  }
  if (!isOne) {
    const response = await context.call("POST", "/backend/delivery/resend", given);
    const are = given["dry_run"] ? "would be" : "are";
    return context.print(response, ({ count }) => `Deliveries that ${are} sent again: ${count}`);
  }
  const response = await context.call("POST", await itemPath(DELIVERY, context, "/resend"), {
    status: status ?? "failed",
  });
  context.print(response, () => `Delivery ${id} is sent again.`);
}
