import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { backUpSqlite } from "../store/backup.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";

/** `gatepost backup`. */
export const BACKUP_COMMAND: Command = {
  words: ["backup"],
  purpose: "Copy the database, also while servers write to it",
  arguments: [
    { name: "FILE", meaning: "the new file, mode 0600; one that is there is not replaced" },
  ],
  options: {},
  details: [
    "The copy holds what was stored when the command began, and is checked before it gets its " +
      "name; until then it grows as FILE.partial. Ctrl+C removes it.",
    "To restore, stop the server and put the copy where GATEPOST_DATABASE points, without a " +
      "-wal or -shm file beside it. What is sealed stays sealed: keep GATEPOST_SECRET_KEY too, " +
      "and elsewhere.",
  ],
  examples: ['gatepost backup "/var/backups/gatepost-$(date +%F).db"'],
  async run({ config, values, terminal, isJson, interruptible }) {
    const path = resolve(config.databasePath);
    if (!existsSync(path)) {
      throw new Failure(`There is no database at ${path} (GATEPOST_DATABASE).`);
    }
    const file = resolve(values.argument("FILE"));
    const bytes = await interruptible((signal) =>
      backUpSqlite(path, file, {
        signal,
        onProgress: (done, total) =>
          terminal.progress(`${Math.floor(100 * done / Math.max(total, 1))} % of ${total} pages`),
      })
    ).finally(() => terminal.progress(undefined));
    terminal.print(
      isJson
        ? JSON.stringify({ file, bytes })
        : `The database has been copied to ${file} (${bytes} bytes).`,
    );
  },
};
