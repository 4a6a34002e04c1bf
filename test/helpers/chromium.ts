import { existsSync, readFileSync, rmSync } from "node:fs";
import { asRecord, type Driver } from "./webdriver.ts";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** One command of the session. */
export type Command = Driver["command"];

export interface SessionOptions {
  /** Accepts any certificate. */
  readonly insecure?: boolean;
}

/**
 * Opens a headless Chromium with this profile. `end()` ends what is left of it after its session,
 * and so does the end of the test's process.
 */
export async function openSession(
  driver: Driver,
  profile: string,
  { insecure = false }: SessionOptions,
): Promise<{ readonly command: Command; end(): void }> {
  const opened = asRecord(await driver.command("POST", "/session", {
    capabilities: {
      alwaysMatch: {
        browserName: "chrome",
        acceptInsecureCerts: insecure,
        "goog:loggingPrefs": { browser: "ALL" },
        "goog:chromeOptions": {
          binary: "/usr/bin/chromium",
          args: [...FLAGS, `--user-data-dir=${profile}`],
        },
      },
    },
  }));
  const pid = Number(asRecord(opened["capabilities"])["goog:processID"]);
  const command: Command = (method, path, body) =>
    driver.command(method, `/session/${String(opened["sessionId"])}${path}`, body);
  // When a test ends its process, nothing asynchronous can run any more.
  const onExit = () => {
    endIfAlive(pid, profile);
    // Chromium's other processes notice the end a little later, and write files until then.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  process.once("exit", onExit);
  const end = () => {
    process.off("exit", onExit);
    endIfAlive(pid, profile);
  };
  return { command, end };
}

/**
 * Ends a Chromium that still runs after its session, as a broken one may. The profile's name in its
 * command line proves that the process id is still that of Chromium.
 */
function endIfAlive(pid: number, profile: string): void {
  const commandLine = `/proc/${pid}/cmdline`;
  if (!existsSync(commandLine) || !readFileSync(commandLine, "utf8").includes(profile)) return;
  process.kill(pid, "SIGKILL");
}
