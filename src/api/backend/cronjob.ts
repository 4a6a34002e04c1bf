import { formatDuration } from "../../base/duration.ts";
import { Problem } from "../../base/problem.ts";
import { actorOf, insertAudit } from "../../store/audit.ts";
import { type Database, FIRST_PAGE } from "../../database/database.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE } from "./backend_route.ts";

/** A job as it stands; times in milliseconds since 1970. */
export interface CronjobState {
  readonly name: string;
  /** Undefined where only its modules know it: on the command line. */
  readonly everyMs: number | undefined;
  readonly isRunning: boolean;
  readonly lastAtMs: number | undefined;
  readonly lastDurationMs: number | undefined;
  readonly lastError: string | undefined;
  readonly nextAtMs: number;
}

/** What the backend's cronjobs work with. */
export interface CronjobAdministrationOptions {
  readonly database: Database;
  readonly jobs: {
    listCronjobs(): Promise<readonly CronjobState[]>;
    runCronjob(name: string): Promise<"started" | "running" | "unknown">;
  };
  readonly now: () => number;
}

/** /backend/cronjob: what runs without a request, the service's own jobs among it. */
export function cronjobRoutes(options: CronjobAdministrationOptions): ProtectedRoute[] {
  const { database, jobs, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/cronjob" };

  return [
    {
      ...collection,
      method: "GET",
      summary: "List the cronjobs and how they last went",
      async handle({ request }) {
        const { limit, before } = readPagination(request);
        const from = before === FIRST_PAGE ? 0 : parseInt(before, 36);
        const all = await jobs.listCronjobs();
        const end = from + limit;
        const next = end < all.length ? end.toString(36) : undefined;
        return listResponse({ items: all.slice(from, end), next }, toRecord);
      },
    },
    {
      ...collection,
      path: `${collection.path}/:name/run`,
      method: "POST",
      summary: "Run a cronjob now, unless it runs already",
      async handle({ params, caller, request }) {
        const name = params["name"] ?? "";
        const job = (await jobs.listCronjobs()).find((each) => each.name === name);
        if (!job) throw new Problem(404, "not_found", "There is no such cronjob.");
        const running = new Problem(409, "conflict", "It runs already.");
        if (job.isRunning) throw running;
        // Before it runs, so that nothing is done without an entry.
        const entry = { ...actorOf(caller, request), action: "cronjob.run", target: name };
        await database.write([insertAudit(entry, now())]);
        if (await jobs.runCronjob(name) !== "started") throw running;
        return jsonResponse(202, { name }, NO_STORE);
      },
    },
  ];
}

function toRecord(job: CronjobState): Record<string, unknown> {
  const { lastAtMs } = job;
  return {
    name: job.name,
    every: job.everyMs === undefined ? null : formatDuration(job.everyMs),
    status: job.isRunning ? "running" : "waiting",
    last_run: lastAtMs === undefined ? null : new Date(lastAtMs).toISOString(),
    duration_ms: job.lastDurationMs ?? null,
    error: job.lastError ?? null,
    next_run: new Date(job.nextAtMs).toISOString(),
  };
}
