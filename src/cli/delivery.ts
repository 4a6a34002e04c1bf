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
  argument: { name: "ID", meaning: "the delivery, as delivery list shows it", example: "d0mhc…" },
  columns: [
    "id", "name*=event", "status", "subscription", "created_at",
    "last_status=response", "last_error=error",
  ],
};
const RESEND: Resource = {
  noun: "resend",
  argument: { name: "ID", meaning: "the resend, as resend list shows it", example: "w0mhc…" },
  columns: ["id", "state", "status", "subscription", "count", "done", "created_at", "actor"],
};
const EVENT = { value: "ID" };
const SELECTION = givenMembers(NewResend.members, {
  event: EVENT,
  status: {
    meaning: "failed, delivered, cancelled or pending: what waits for a resend",
    also: { failed: { meaning: "every delivery that has failed; filters narrow that" } },
    read: (values) => values.flag("failed") ? "failed" : values.text("status"),
    isRequired: false,
  },
  first: { flag: "one", meaning: "send the first of them alone, as a trial" },
});

/** The commands of `gatepost delivery` and `gatepost resend`. */
export const DELIVERY_COMMANDS: readonly Command[] = [
  listCommand(DELIVERY, "List deliveries, newest first", {
    examples: ["gatepost delivery list --status failed"],
    query: DELIVERY_LIST.filters,
    members: { event: EVENT },
  }),
  showCommand(DELIVERY, "Show a delivery with its attempts", {
    details: ["RESPONSE is how the response to an attempt began."],
    tables: {
      attempts: ["time", "attempt", "status", "error", "duration_ms=ms", "snippet*=response"],
    },
  }),
  {
    words: ["delivery", "resend"],
    purpose: "Send a delivery again that failed, or many",
    arguments: [{ name: "ID", meaning: "the delivery; leave it out for many", isOptional: true }],
    options: SELECTION.options,
    details: [
      "Each goes out again with a fresh budget of attempts, under its old webhook-id. A running " +
        "server sends them; without one they wait. `resend list` shows how far many have come, " +
        "and `resend stop ID` ends that.",
    ],
    examples: [
      "gatepost delivery resend --failed",
      "gatepost delivery resend --failed --since 2030-01-31T12:00:00Z --dry-run",
      "gatepost delivery resend d0mhc…",
    ],
    run: resend,
  },
  listCommand(RESEND, "List resends, newest first", { query: RESEND_LIST.filters }),
  showCommand(RESEND, "Show how far a resend has come"),
  sendCommand(RESEND, "stop", "Stop a resend; what it has sent stays so", {
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
    throw new UsageError("delivery resend needs an ID, or --failed or --status with filters");
  }
  if (!isOne) {
    const response = await context.call("POST", "/backend/delivery/resend", given);
    const go = given["dry_run"] ? "would go" : "go";
    return context.print(response, ({ count }) => `Deliveries that ${go} out again: ${count}`);
  }
  const response = await context.call("POST", await itemPath(DELIVERY, context, "/resend"), {
    status: status ?? "failed",
  });
  context.print(response, () => `Delivery ${id} goes out again.`);
}
