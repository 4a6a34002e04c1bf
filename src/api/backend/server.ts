import { conflict } from "../../base/problem.ts";
import { randomBytes } from "../../base/secret.ts";
import { COUNT, described, named, record, TEXT } from "../../base/shape.ts";
import { toTime } from "../../base/time.ts";
import { describeConfig } from "../../config.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { Services } from "../../services.ts";
import { actorOf, insertAudit } from "../../store/audit.ts";
import { backend, type Operation } from "../operation.ts";
import { listingOf } from "../pagination.ts";

const Setting = named("Setting", record({
  name: TEXT,
  value: described("The value in force; of a secret, only whether it is set.", TEXT),
}));

/** GET /backend/config: the configuration in force, with defaults where nothing is set. */
export function configOperation({ config }: Pick<Services, "config">): Operation {
  return backend("GET", "/backend/config", "listSettings", "The configuration in force",
    listingOf(Setting, ({ name }) => name, "up", () => describeConfig(config)));
}

const Backup = named("BackupFile", record({
  file: described("Beside the database.", TEXT),
  bytes: COUNT,
}));

/** POST /backend/backup: only on a server, since the command line has a backup of its own. */
export function backupOperation(
  { database, backUpAs, now }: Pick<Services, "database" | "backUpAs" | "now">,
): Operation {
  let isUnderWay = false;
  return backend("POST", "/backend/backup", "backUp", "Copy the database to a file beside it", {
    responses: { 201: Backup },
    isLocated: false,
    refuses: [409],
    async handle({ caller, request }) {
      if (!backUpAs) throw conflict("A cluster has no backup folder; use `gatepost backup FILE`.");
      if (isUnderWay) throw conflict("A backup is already running.");
      isUnderWay = true;
      try {
        // The random mark is needed since another process may make a backup at the same time.
        const mark = randomBytes(4).toString("hex");
        const file = `gatepost-${toTime(now()).replace(/\D/g, "")}-${mark}.db`;
        const entry = { ...actorOf(caller, request), action: "backup.create", target: file };
        await database.write([insertAudit(entry, now())]);
        return jsonResponse(201, { file, bytes: await backUpAs(file) });
      } finally {
        isUnderWay = false;
      }
    },
  });
}
