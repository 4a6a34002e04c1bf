import { readFileSync } from "node:fs";
import { parseArgs, type ParseArgsConfig } from "node:util";

/**
 * Reads the options of a script as `parseArgs` does. With --help the script prints the comment at
 * its head and ends. With a wrong option it prints the reason and ends with exit code 2.
 */
export function readOptions<const Config extends ParseArgsConfig>(config: Config) {
  try {
    if (!process.argv.includes("--help")) return parseArgs<Config>(config);
    const source = readFileSync(String(process.argv[1]), "utf8");
    const [, head = ""] = /^\/\*\*\n([^]*?)\n \*\//.exec(source) ?? [];
    console.log(head.replace(/^ \* ?/gm, ""));
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\nSee --help.`);
    process.exit(2);
  }
}
