import { DELIVERY_QUERY, Resend } from "../api/delivery.ts";
import { countFailedDeliveries } from "../store/state.ts";
import type { Command, CommandContext } from "./command.ts";
import { Failure, UsageError } from "./failure.ts";
import { givenMembers, itemPath, listCommand, type Resource, showCommand } from "./resource.ts";
import { formatValue, type Members } from "./table.ts";

const PROGRESS_MS = 300;
const DELIVERY: Resource = {
  noun: "delivery",
  path: "/backend/delivery",
  argument: { name: "ID", meaning: "the delivery, as delivery list shows it", example: "d0mhc…" },
  columns: ["id", "name*=event", "status", "subscription", "created_at"],
};
const FILTERS = givenMembers(Resend.members, {
  status: { flag: "failed", meaning: "every delivery that has failed" },
  since: { value: "TIME", meaning: "with --failed: of events dispatched from then on" },
  until: { value: "TIME", meaning: "with --failed: of events dispatched until then" },
  subscription: { value: "ID", meaning: "with --failed: of this subscription" },
});

/** The commands of `gatepost delivery`. */
export const DELIVERY_COMMANDS: readonly Command[] = [
  listCommand(DELIVERY, {
    purpose: "List deliveries, newest first",
    examples: ["gatepost delivery list --status failed"],
    query: DELIVERY_QUERY,
    members: {
      event: { value: "ID", meaning: "only those of this event" },
      subscription: { value: "ID", meaning: "only those of this subscription" },
    },
  }),
  showCommand(DELIVERY, {
    purpose: "Show a delivery with its attempts",
    details: ["RESPONSE is how the response to an attempt began."],
    tables: {
      attempts: ["time", "attempt", "status", "error", "duration_ms=ms", "snippet*=response"],
    },
  }),
  {
    words: ["delivery", "resend"],
    purpose: "Send a failed delivery again, or all of them",
    arguments: [
      { name: "ID", meaning: "the delivery; leave it out with --failed", isOptional: true },
    ],
    options: FILTERS.options,
    details: [
      "Each goes out again with a fresh budget of attempts, under its old webhook-id. A running " +
        "server sends them; without one they wait. Ctrl+C stops between two steps: what has " +
        "been taken goes out, the rest stays failed, and the same command goes on with it.",
    ],
    examples: [
      "gatepost delivery resend --failed",
      "gatepost delivery resend --failed --since 2030-01-31T12:00:00Z",
      "gatepost delivery resend d0mhc…",
    ],
    run: resend,
  },
];

async function resend(context: CommandContext): Promise<void> {
  const id = context.values.argument("ID");
  const filters = await FILTERS.read(context);
  const isAll = filters["status"] !== undefined;
  if (isAll === (id !== "")) throw new UsageError("delivery resend needs either ID or --failed");
  if (isAll) return resendFailed(context, filters);
  if (Object.keys(filters).length > 0) {
    throw new UsageError("--since, --until and --subscription go with --failed");
  }
  const response = await context.call("POST", await itemPath(DELIVERY, context, "/resend"));
  context.print(response, () => `Delivery ${id} goes out again.`);
}

async function resendFailed(context: CommandContext, filters: Members): Promise<void> {
  await context.interruptible(async (signal) => {
    const endProgress = await showProgress(context);
    const response = await context.call("POST", `${DELIVERY.path}/resend`, filters, signal)
      .finally(endProgress);
    context.print(response, ({ count }) => `Deliveries that go out again: ${formatValue(count)}`);
    if (signal.aborted) throw new Failure("Interrupted; what was not reached stays failed.");
  });
}

/** Shows on a terminal how many are done, again and again until the function returned is called. */
async function showProgress({ terminal, openBackend }: CommandContext): Promise<() => void> {
  if (!terminal.showsProgress) return () => {};
  const { database } = await openBackend();
  const total = await countFailedDeliveries(database);
  const timer = setInterval(() => {
    countFailedDeliveries(database).then(
      (left) => terminal.progress(`${Math.max(0, total - left)} of ${total} failed deliveries`),
      () => {}, // the call itself meets the same error and reports it
    );
  }, PROGRESS_MS);
  return () => {
    clearInterval(timer);
    terminal.progress(undefined);
  };
}
