import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const CRONJOB: Resource = {
  noun: "cronjob",
  argument: { name: "NAME", meaning: "its name, as cronjob list shows it", example: "cleanup" },
  columns: ["name", "status", "last_run", "duration_ms=ms", "next_run", "error*"],
};

export const CRONJOB_COMMANDS: readonly Command[] = [
  listCommand(CRONJOB, "List the servers' cronjobs, and their last runs", {
    details: [
      "Jobs that each server runs for itself are not listed: GET /backend/cronjob shows them, " +
        "and how often each job runs. A job whose module is gone is listed for 90 more days.",
    ],
  }),
  sendCommand(CRONJOB, "run", "Run a cronjob now, on a running server", {
    details: [
      "A server that has the job's module runs it within a second; without one it waits. The " +
        "interval to its next run begins with this run.",
    ],
    below: "/run",
    done: (name) => `Cronjob ${name} is due: a running server runs it.`,
  }),
];
