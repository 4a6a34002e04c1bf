import { call } from "../api.ts";
import { asking } from "../asking.ts";
import { nameOf } from "../names.ts";
import { things } from "../things.ts";

export const show = things({
  words: "What runs without a request, the service's own jobs among it.",
  path: "cronjob",
  columns: ["name", "status", "every", "last_run", "duration_ms", "next_run", "error"],
  empty: "This process runs no cronjob.",
  pollMs: 10_000,
  act: (job) => asking("Run now", nameOf(job), "Its next run stays where it is.",
    () => call("POST", `/backend/cronjob/${nameOf(job)}/run`)),
});
