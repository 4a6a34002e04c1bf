import { lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command, CommandContext } from "./command.ts";
import { Failure } from "./failure.ts";
import { initFiles } from "./init_files.ts";
import { visible } from "./table.ts";

/** `gatepost init`. */
export const INIT_COMMAND: Command = {
  words: ["init"],
  purpose: "Begin a folder of endpoint modules",
  arguments: [
    { name: "FOLDER", meaning: "made where it is missing; else the current one", isOptional: true },
  ],
  details: [
    "Writes an example endpoint with its test, the types for an editor and for the compiler " +
      "(gatepost.d.ts: nothing need be installed), tsconfig.json, package.json and .gitignore. " +
      "Where one of these files is there already it writes nothing.",
  ],
  examples: ["gatepost init", "gatepost init shop"],
  run(context) {
    const folder = resolve(context.values.argument("FOLDER"));
    const files = Object.entries(initFiles());
    const names = files.map(([name]) => name);
    const taken = names.filter((name) => lstatSync(join(folder, name), { throwIfNoEntry: false }));
    if (taken.length > 0) {
      throw new Failure(`nothing was written: ${folder} has ${taken.join(", ")} already`);
    }
    for (const [name, text] of files) {
      const path = join(folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text, { flag: "wx" });
    }
    context.print({ folder, files: names }, () => describe(names, context));
  },
};

function describe(names: readonly string[], { host, values }: CommandContext): string {
  const [program = "", script = ""] = host.argv;
  const gatepost = basename(script) === "gatepost" ? "gatepost" : `${program} ${script}`;
  const folder = values.argument("FOLDER");
  return [
    ...names.map((name) => `Wrote ${visible(join(folder, name))}`),
    "",
    "Next:",
    ...folder === "" ? [] : [`  cd ${visible(folder)}`],
    `  ${gatepost} test`,
    `  ${gatepost} dev`,
  ].join("\n");
}
