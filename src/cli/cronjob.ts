import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const CRONJOB: Resource = {
  noun: "cronjob",
  argument: { name: "NAME", meaning: "the job, as cronjob list shows it", example: "cleanup" },
  columns: ["name", "status", "last_run", "duration_ms=ms", "next_run", "error*"],
};

export const CRONJOB_COMMANDS: readonly Command[] = [
  listCommand(CRONJOB, "List the servers' jobs, and how they last went", {
    details: [
      "The others run in each server by itself: GET /backend/cronjob shows them, and how often " +
        "each job runs. One whose module is gone is listed for 90 days more.",
    ],
  }),
  sendCommand(CRONJOB, "run", "Make a job due now, for a running server", {
    details: [
      "A server that has the job's module runs it within a second; without one it waits. Its " +
        "later runs are counted from this one.",
    ],
    below: "/run",
    done: (name) => `Cronjob ${name} is due: a running server takes it up.`,
  }),
];
