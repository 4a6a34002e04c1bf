import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { createSeal } from "../base/seal.ts";
import { createEngine } from "../database/engine.ts";
import type { Command } from "./command.ts";
import { Failure, UsageError } from "./failure.ts";

export const BACKUP_COMMAND: Command = {
  words: ["backup"],
  purpose: "Copy the database, also while servers write to it",
  arguments: [
    { name: "FILE", meaning: "the new file, mode 0600; an existing one is not replaced" },
  ],
  details: [
    "The copy holds what was stored when the command began. It is written as FILE.partial, " +
      "checked, and then renamed to FILE. Ctrl+C removes FILE.partial; after a kill, " +
      "the next backup into that folder removes it.",
    "gatepost restore restores it. Encrypted secrets stay encrypted: keep GATEPOST_SECRET_KEY " +
      "too, in another place.",
  ],
  examples: ['gatepost backup "/var/backups/gatepost-$(date +%F).db"'],
  async run(context) {
    const { config, values, interruptible } = context;
    const engine = await createEngine(config);
    if (!await engine.exists()) {
      throw new Failure(`There is no database at ${engine.address} (GATEPOST_DATABASE).`);
    }
    if (values.argument("FILE") === "-") {
      throw new UsageError("A backup goes to a new file, never to standard output.");
    }
    const file = resolve(values.argument("FILE"));
    if (existsSync(file) && !statSync(file).isFile()) {
      throw new Failure(`${file} is not a regular file; a backup needs the name of a new file.`);
    }
    const bytes = await interruptible((signal) => engine.backUp(file, signal));
    context.print({ file, bytes }, () =>
      `The database has been copied to ${file} (${bytes} bytes).`
    );
  },
};

export const RESTORE_COMMAND: Command = {
  words: ["restore"],
  purpose: "Replace the database with a backup",
  arguments: [{ name: "FILE", meaning: "a file that gatepost backup made; it is not changed" }],
  details: [
    "Stop every server first: this fails while a process has the database open. FILE must be an " +
      "intact database of Gatepost, not newer than this program, and GATEPOST_SECRET_KEY must " +
      "decrypt it. The previous database is moved aside with its log, and its new name printed; " +
      "the previous contents of a cluster are written to a file beside FILE.",
    "Tokens that were revoked after the backup are valid again: revoke them once more.",
  ],
  examples: ["gatepost restore /var/backups/gatepost-2026-11-20.db"],
  async run(context) {
    const { config, values, interruptible } = context;
    const engine = await createEngine(config);
    const file = resolve(values.argument("FILE"));
    const seal = createSeal(...config.secretKeys ?? []);
    const { bytes, keptAs } = await interruptible((signal) =>
      engine.restore(file, seal, Date.now(), signal)
    );
    const kept = keptAs === undefined ? "" : `\nThe previous database is now ${keptAs}.`;
    context.print({ file: engine.address, bytes, kept_as: keptAs ?? null }, () =>
      `${engine.address} is now a copy of ${file} (${bytes} bytes).${kept}`
    );
  },
};
