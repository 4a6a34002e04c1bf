import { MessageChannel, Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import type { SelfTest } from "../job/egress.ts";
import type { Database } from "../store/database.ts";
import { serveWrites } from "../store/shared_database.ts";
import type { FromPost, PostReport, PostSettings, ToPost } from "./post_messages.ts";

/** What the post is started with. */
export interface PostOptions {
  /** Of this process, which its claims carry. */
  readonly name: string;
  readonly config: PostSettings;
  /** Takes the thread's writes. */
  readonly database: Database;
  readonly log: Log;
  /** Told of every attempt, for the metrics. */
  readonly observeAttempt: (isSuccess: boolean, ms: number) => void;
}

/** Delivery, at work in a thread of its own. */
export interface Post {
  /** What the address guard's test found: without it nothing is sent. Open where it is stopped before. */
  readonly started: Promise<SelfTest>;
  /** Tells it that there may be work. */
  wake(): void;
  /** Has it take over what processes that have ended had claimed, and look for work. */
  look(): Promise<void>;
  /** How it does. */
  report(): Omit<PostReport, "attempts">;
  /** Awaits attempts in flight for at most `graceMs`, cuts off the rest, gives unsent work back. */
  stop(graceMs: number): Promise<void>;
}

// Beyond the grace: for recording what came of the attempts. What is not, is taken over.
const STOP_MARGIN_MS = 5_000;

/**
 * Starts the thread that distributes events and sends callbacks. It is apart from the one that
 * answers requests, because `fetch` keeps a thread busy, by its work and by what it leaves to be
 * collected, and requests shall not wait for it. An error that nobody has caught there ends the
 * process, as one here does.
 */
export function startPost(options: PostOptions): Post {
  const { name, config, database, log, observeAttempt } = options;
  const { port1: toDatabase, port2: port } = new MessageChannel();
  serveWrites(database, port);
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const worker = new Worker(new URL(`./post_thread${extension}`, import.meta.url), {
    workerData: { role: "gatepost-post", name, settings: settingsOf(config), toDatabase },
    transferList: [toDatabase],
  });
  const started = Promise.withResolvers<SelfTest>();
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  let looking: PromiseWithResolvers<void> | undefined;
  let lastReport: Omit<PostReport, "attempts"> = { quietMs: 0, inFlight: 0 };
  let reportedMs = performance.now(); // by this clock, since the one on the wall may be set
  let isWoken = false;
  const say = (message: ToPost) => worker.postMessage(message);

  worker.on("message", (message: FromPost) => {
    switch (message.kind) {
      case "started":
        return started.resolve(message.test);
      case "looked":
        return message.fault === undefined
          ? looking?.resolve()
          : looking?.reject(new Error(message.fault));
      case "report":
        for (const { isSuccess, ms } of message.attempts) observeAttempt(isSuccess, ms);
        lastReport = message;
        reportedMs = performance.now();
        return;
      case "log":
        return log[message.level](message.msg, message.fields);
      default:
        message satisfies never;
    }
  });
  worker.on("error", (error) => {
    throw error;
  });
  void ended.then(() => {
    looking?.resolve();
    port.close();
  });

  return {
    started: started.promise,
    wake() {
      if (isWoken) return;
      isWoken = true; // once for all that is dispatched in this turn of the loop
      setImmediate(() => {
        isWoken = false;
      });
      say({ kind: "wake" });
    },
    look() {
      looking = Promise.withResolvers();
      say({ kind: "look" });
      return looking.promise;
    },
    report: () => ({
      inFlight: lastReport.inFlight,
      quietMs: lastReport.quietMs + performance.now() - reportedMs,
    }),
    async stop(graceMs) {
      say({ kind: "stop", graceMs });
      const margin = setTimeout(() => void worker.terminate(), graceMs + STOP_MARGIN_MS);
      await ended;
      clearTimeout(margin);
    },
  };
}

/** What the thread needs and no more: passwords are none of its business. */
function settingsOf(config: PostSettings): PostSettings {
  const { databasePath, secretKey, callbackAllow, callbackTimeoutMs, callbackConcurrency } = config;
  const { callbackConcurrencyPerSubscription, resendDelaysMs, disableAfterMs } = config;
  return {
    databasePath,
    secretKey,
    callbackAllow,
    callbackTimeoutMs,
    callbackConcurrency,
    callbackConcurrencyPerSubscription,
    resendDelaysMs,
    disableAfterMs,
  };
}
