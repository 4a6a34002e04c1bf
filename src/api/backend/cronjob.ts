import { formatDuration } from "../../base/duration.ts";
import { conflict } from "../../base/problem.ts";
import { described, named, nullable, NUMBER, oneOf, record, TEXT } from "../../base/shape.ts";
import { TIME, toTime } from "../../base/time.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAudit } from "../../store/audit.ts";
import { found } from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listingOf } from "../pagination.ts";

const PATH = "/backend/cronjob";

const CronjobRecord = named("Cronjob", record({
  name: TEXT,
  every: described("Such as 5m; null if this process has no such job.", nullable(TEXT)),
  status: oneOf("running", "waiting"),
  last_run: nullable(TIME),
  duration_ms: nullable(NUMBER),
  error: nullable(TEXT),
  next_run: TIME,
}));

/** /backend/cronjob: the cronjobs, including the service's own jobs. */
export function cronjobOperations(
  { database, jobs, now }: Pick<Services, "database" | "jobs" | "now">,
): Operation[] {
  return [
    backend("GET", PATH, "listCronjobs", "List the cronjobs and their last runs",
      listingOf(CronjobRecord, ({ name }) => name, "up", async () =>
        (await jobs.listCronjobs()).map((job) => ({
          name: job.name,
          every: job.everyMs === undefined ? null : formatDuration(job.everyMs),
          status: job.isRunning ? "running" : "waiting",
          last_run: job.lastAtMs === null ? null : toTime(job.lastAtMs),
          duration_ms: job.lastDurationMs,
          error: job.lastError,
          next_run: toTime(job.nextAtMs),
        })))),
    backend("POST", `${PATH}/:name/run`, "runCronjob",
      "Run a cronjob now, unless it runs already", {
      responses: { 202: named("CronjobName", record({ name: TEXT })) },
      refuses: [409],
      async handle({ params: { name }, caller, request }) {
        const all = await jobs.listCronjobs();
        const job = found(all.find((each) => each.name === name), "cronjob");
        const running = conflict("The cronjob is already running.");
        if (job.isRunning) throw running;
        // Audited before the job runs, so that no run is without an entry.
        const entry = { ...actorOf(caller, request), action: "cronjob.run", target: name };
        await database.write([insertAudit(entry, now())]);
        if (await jobs.runCronjob(name) !== "started") throw running;
        return jsonResponse(202, { name });
      },
    }),
  ];
}
