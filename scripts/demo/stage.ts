import { join } from "node:path";
import {
  runCli,
  type RunningServer,
  type RunResult,
  startServer,
} from "../../test/helpers/process.ts";
import { startSubscriber, type Subscriber } from "./subscriber.ts";

/** Everything that runs during the demo, each in a process of its own. */
export interface DemoStage {
  readonly server: RunningServer;
  /** The operator's settings except for port and database. */
  readonly env: Readonly<Record<string, string>>;
  readonly subscriber: Subscriber;
  /** Runs `gatepost …` on the server's database, as an operator does beside a running server. */
  gatepost(args: readonly string[], stdin?: string): Promise<RunResult>;
  /** Stops the server as an operator does, and returns its exit code. */
  stopServer(): Promise<number | null>;
  /** Ends whatever still runs, and removes the data folder. */
  close(): Promise<void>;
}

export interface StageOptions {
  /** Another program than dist/server.js. */
  readonly entry?: string | undefined;
  readonly resendDelays: string;
}

/** Starts the subscriber and the built server. */
export async function openStage(options: StageOptions): Promise<DemoStage> {
  const env = {
    GATEPOST_ENDPOINTS: join(import.meta.dirname, "endpoints"),
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_RESEND_DELAYS: options.resendDelays,
  };
  const subscriber = await startSubscriber();
  const server = await startServer({ env, ...(options.entry && { entry: options.entry }) })
    .catch(async (error: unknown) => {
      await subscriber.close();
      throw error;
    });
  let stopped: Promise<number | null> | undefined;
  const stopServer = () => stopped ??= server.stop();
  return {
    server,
    env,
    subscriber,
    gatepost: (args, stdin = "") => {
      const database = join(server.folder, "gatepost.db");
      return runCli(args, { env: { GATEPOST_DATABASE: database }, stdin });
    },
    stopServer,
    async close() {
      await stopServer();
      await subscriber.close();
    },
  };
}
