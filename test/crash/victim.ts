import { setTimeout as sleep } from "node:timers/promises";
import { PASSWORD, SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";
import type { KillPoint } from "./points.ts";

/** The server's database, below the folder of a run. */
export const DATABASE = "gatepost.db";

const KILL_AT = import.meta.resolve("./kill_at.ts");
const PATIENCE_MS = 15_000;

type Env = Readonly<Record<string, string>>;

/** Starts a server that is to be killed, on the database in `folder`. */
export function startVictim(folder: string, env: Env): Promise<RunningServer> {
  return startServer({
    entry: SOURCE_ENTRY,
    folder,
    nodeFlags: ["--import", KILL_AT],
    env: {
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      NODE_V8_COVERAGE: undefined, // a killed process writes none, and counting costs time
      ...env,
    },
  });
}

/** The variables that make a server kill itself around the `count`th commit of that kind. */
export function crashEnv({ when, text }: KillPoint & { kind: "commit" }, count: number): Env {
  return { CRASH_WHEN: when, CRASH_TEXT: text, CRASH_COUNT: String(count) };
}

/** Whether there is no such process any more. */
export function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** Waits until it holds, for 15 seconds or as given; `what` is the message if it never does. */
export async function until(
  holds: () => boolean,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  for (const end = Date.now() + patienceMs; !holds();) {
    if (Date.now() > end) throw new Error(what);
    await sleep(5);
  }
}
