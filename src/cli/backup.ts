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
    { name: "FILE", meaning: "the new file, mode 0600; one that is there is not replaced" },
  ],
  details: [
    "The copy holds what was stored when the command began, and is checked before it gets its " +
      "name; until then it grows as FILE.partial. Ctrl+C removes it; if the command was killed, " +
      "the next backup into that folder does.",
    "gatepost restore brings it back. What is sealed stays sealed: keep GATEPOST_SECRET_KEY too, " +
      "and elsewhere.",
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
      throw new Failure(`${file} is not a regular file; a backup makes a new one.`);
    }
    const bytes = await interruptible((signal) => engine.backUp(file, signal));
    context.print({ file, bytes }, () =>
      `The database has been copied to ${file} (${bytes} bytes).`
    );
  },
};

export const RESTORE_COMMAND: Command = {
  words: ["restore"],
  purpose: "Put a backup in the database's place",
  arguments: [{ name: "FILE", meaning: "what gatepost backup has made; it stays as it is" }],
  details: [
    "Stop every server first: it refuses while a process has the database open. FILE must be a " +
      "sound database of Gatepost, not newer than this program, that GATEPOST_SECRET_KEY opens. " +
      "The database that is there is moved aside, with its log, under a name that is printed; " +
      "what a cluster held becomes a file beside FILE.",
    "What was revoked since the backup is good again: revoke it once more.",
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
    const kept = keptAs === undefined ? "" : `\nThe one that was there is now ${keptAs}.`;
    context.print({ file: engine.address, bytes, kept_as: keptAs ?? null }, () =>
      `${engine.address} is now a copy of ${file} (${bytes} bytes).${kept}`
    );
  },
};
