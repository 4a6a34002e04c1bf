import type { Command } from "./command.ts";
import { column, itemPath, LIST_OPTIONS, printList } from "./listing.ts";
import { visible } from "./table.ts";

const RESOURCE = "/backend/cronjob";

/** The commands of `gatepost cronjob`. */
export const CRONJOB_COMMANDS: readonly Command[] = [
  {
    words: ["cronjob", "list"],
    purpose: "List the modules' jobs, and how they last went",
    arguments: [],
    options: LIST_OPTIONS,
    details: [
      "The service's own jobs run in each server by itself: GET /backend/cronjob shows them, and " +
        "how often each job runs.",
    ],
    examples: ["gatepost cronjob list"],
    run: (context) =>
      printList(context, RESOURCE, {}, [
        column("NAME", "name"),
        column("STATUS", "status"),
        column("LAST RUN", "last_run"),
        column("MS", "duration_ms"),
        column("NEXT RUN", "next_run"),
        column("ERROR", "error", true),
      ]),
  },
  {
    words: ["cronjob", "run"],
    purpose: "Make a job due now, for a running server",
    arguments: [{ name: "NAME", meaning: "the job, as cronjob list shows it" }],
    options: {},
    details: [
      "A server that has the job's module runs it within a second; without one it waits. Its later " +
        "runs are counted from this one.",
    ],
    examples: ["gatepost cronjob run cleanup"],
    async run(context) {
      const name = context.values.argument("NAME");
      const backend = await context.openBackend();
      const answer = await backend.call("POST", itemPath(RESOURCE, name, "/run"));
      context.print(answer, () => `Cronjob ${visible(name)} is due: a running server takes it up.`);
    },
  },
];
