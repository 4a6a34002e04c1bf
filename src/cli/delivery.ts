import { DELIVERY_QUERY } from "../api/delivery.ts";
import { countFailedDeliveries } from "../store/state.ts";
import type { Backend } from "./backend.ts";
import type { Command, CommandContext } from "./command.ts";
import { Failure, UsageError } from "./failure.ts";
import { itemPath, listCommand, type Resource, showCommand } from "./resource.ts";
import { formatValue } from "./table.ts";
import type { Terminal } from "./terminal.ts";

const PROGRESS_MS = 300;
const DELIVERY: Resource = {
  noun: "delivery",
  path: "/backend/delivery",
  argument: { name: "ID", meaning: "the delivery, as delivery list shows it" },
  columns: ["id", "name*=event", "status", "subscription", "created_at"],
  shown: [],
};

/** The commands of `gatepost delivery`. */
export const DELIVERY_COMMANDS: readonly Command[] = [
  listCommand(DELIVERY, {
    purpose: "List deliveries, newest first",
    examples: ["gatepost delivery list --status failed"],
  }, DELIVERY_QUERY, {
    status: { meaning: "only pending, delivered, failed or cancelled ones" },
    event: { value: "ID", meaning: "only those of this event" },
    subscription: { value: "ID", meaning: "only those of this subscription" },
  }),
  showCommand(DELIVERY, {
    purpose: "Show a delivery with its attempts",
    details: ["RESPONSE is how the response to an attempt began."],
    examples: ["gatepost delivery show d0mhc…"],
  }, { attempts: ["time", "attempt", "status", "error", "duration_ms=ms", "snippet*=response"] }),
  {
    words: ["delivery", "resend"],
    purpose: "Send a failed delivery again, or all of them",
    arguments: [
      { name: "ID", meaning: "the delivery; leave it out with --failed", isOptional: true },
    ],
    options: {
      failed: { meaning: "every delivery that has failed" },
      since: { value: "TIME", meaning: "with --failed: of events dispatched from then on" },
      until: { value: "TIME", meaning: "with --failed: of events dispatched until then" },
      subscription: { value: "ID", meaning: "with --failed: of this subscription" },
    },
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
  const { values } = context;
  const id = values.argument("ID");
  const isAll = values.flag("failed") ?? false;
  if (isAll === (id !== "")) throw new UsageError("delivery resend needs either ID or --failed");
  const filters = {
    since: values.text("since"),
    until: values.text("until"),
    subscription: values.text("subscription"),
  };
  if (isAll) return resendFailed(context, JSON.stringify({ status: "failed", ...filters }));
  if (Object.values(filters).some((value) => value !== undefined)) {
    throw new UsageError("--since, --until and --subscription go with --failed");
  }
  const path = await itemPath(DELIVERY, context, "/resend");
  const response = await (await context.openBackend()).call("POST", path);
  context.print(response, () => `Delivery ${id} goes out again.`);
}

async function resendFailed(context: CommandContext, body: string): Promise<void> {
  const backend = await context.openBackend();
  await context.interruptible(async (signal) => {
    const endProgress = await showProgress(backend, context.terminal);
    const response = await backend.call("POST", `${DELIVERY.path}/resend`, body, signal)
      .finally(endProgress);
    context.print(response, ({ count }) => `Deliveries that go out again: ${formatValue(count)}`);
    if (signal.aborted) throw new Failure("Interrupted; what was not reached stays failed.");
  });
}

/** Shows on a terminal how many are done, again and again until the function returned is called. */
async function showProgress({ database }: Backend, terminal: Terminal): Promise<() => void> {
  if (!terminal.showsProgress) return () => {};
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
