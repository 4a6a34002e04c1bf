import { toJobState } from "../job/shared_cron.ts";
import type { Services } from "../services.ts";
import { hastenCronjob, listStoredCronjobs } from "../store/cronjobs.ts";
import type { Database } from "../database/database.ts";

/** The jobs as the database knows them; to run one here is to make it due for a server. */
export function storedJobs(database: Database, now: () => number): Services["jobs"] {
  return {
    async listCronjobs() {
      const stored = await listStoredCronjobs(database);
      return stored.map((job) => toJobState(job, undefined, now()));
    },
    async runCronjob(name) {
      return await hastenCronjob(database, name, now()) ? "started" : "unknown";
    },
  };
}
