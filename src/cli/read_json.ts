import { type JsonValue, parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import { UsageError } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/**
 * The JSON that was given, or with `-` what standard input has. Other text is wrong usage, found
 * before anything is opened, and not repeated; `what` names it: "the data".
 */
export async function readJson(
  given: string,
  what: string,
  terminal: Pick<Terminal, "readStdin">,
): Promise<JsonValue> {
  const json = given === "-" ? await terminal.readStdin() : given;
  try {
    return parseJson(Buffer.from(json), { exactIntegers: true });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const wrong = error.message.replace("The body", what).replace(/\.$/, "");
    throw new UsageError(wrong, { cause: error });
  }
}
