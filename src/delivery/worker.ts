import { MessageChannel, Worker } from "node:worker_threads";
import type { Log } from "../base/log.ts";
import type { SelfTest } from "./egress.ts";
import type { Database } from "../database/database.ts";
import { serveWrites } from "../database/shared_database.ts";
import type { WorkerEvent, WorkerReport, WorkerSettings, WorkerRequest } from "./worker_messages.ts";

/** What the post is started with. */
export interface WorkerOptions {
  /** Of this process, which its claims carry. */
  readonly name: string;
  readonly config: WorkerSettings;
  /** Takes the thread's writes. */
  readonly database: Database;
  readonly log: Log;
  /** Told of every attempt, for the metrics. */
  readonly observeAttempt: (isSuccess: boolean, ms: number) => void;
}

/** Delivery, at work in a thread of its own. */
export interface DeliveryWorker {
  /** What the address guard's test found: without it nothing is sent. Open where it is stopped before. */
  readonly started: Promise<SelfTest>;
  /** Tells it that there may be work. */
  wake(): void;
  /** Has it take over what processes that have ended had claimed, and look for work. */
  look(): Promise<void>;
  /** How it does. */
  report(): Omit<WorkerReport, "attempts">;
  /** Awaits attempts in flight for at most `graceMs`, cuts off the rest, gives unsent work back. */
  stop(graceMs: number): Promise<void>;
}

/** One thread at work. */
interface Thread {
  say(message: WorkerRequest): void;
  /** When it has ended: why, where it was an error. */
  readonly ended: Promise<Error | undefined>;
  terminate(): void;
}

// Beyond the grace: for recording what came of the attempts. What is not, is taken over.
const STOP_MARGIN_MS = 5_000;
/** Before a thread that has died is started again; twice as long each time, up to a minute. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const NO_REPORT = { quietMs: Infinity, inFlight: 0, want: undefined };

/**
 * Starts the thread that distributes events and sends callbacks. It is apart from the one that
 * answers requests, because `fetch` keeps a thread busy, by its work and by what it leaves to be
 * collected, and requests shall not wait for it. Should it die (an error that nobody has caught
 * there), another takes its place and its claims.
 */
export function startDeliveryWorker(options: WorkerOptions): DeliveryWorker {
  const { log, observeAttempt } = options;
  const started = Promise.withResolvers<SelfTest>();
  let looking: PromiseWithResolvers<void> | undefined;
  let lastReport: Omit<WorkerReport, "attempts"> = { ...NO_REPORT, quietMs: 0 };
  let reportedMs = performance.now(); // by this clock, since the one on the wall may be set
  let isWoken = false;
  let isStopping = false;
  let pauseMs = FIRST_PAUSE_MS;
  let restart: NodeJS.Timeout | undefined;
  let thread = run();

  function listen(message: WorkerEvent): void {
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
  }

  function run(): Thread {
    const startedMs = performance.now();
    const running = openThread(options, listen);
    void running.ended.then((error) => {
      looking?.resolve();
      if (isStopping) return;
      lastReport = NO_REPORT;
      if (performance.now() - startedMs > LONGEST_PAUSE_MS) pauseMs = FIRST_PAUSE_MS;
      log.error("delivery has died and is started again", { error, pause_ms: pauseMs });
      restart = setTimeout(() => {
        thread = run();
      }, pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    });
    return running;
  }

  return {
    started: started.promise,
    wake() {
      if (isWoken) return;
      isWoken = true; // once for all that is dispatched in this turn of the loop
      setImmediate(() => {
        isWoken = false;
      });
      thread.say({ kind: "wake" });
    },
    look() {
      looking = Promise.withResolvers();
      thread.say({ kind: "look" });
      return Promise.race([looking.promise, thread.ended.then(() => {})]);
    },
    report: () => ({
      ...lastReport,
      quietMs: lastReport.quietMs + performance.now() - reportedMs,
    }),
    async stop(graceMs) {
      isStopping = true;
      clearTimeout(restart);
      thread.say({ kind: "stop", graceMs });
      const margin = setTimeout(thread.terminate, graceMs + STOP_MARGIN_MS);
      await thread.ended;
      clearTimeout(margin);
    },
  };
}

function openThread(
  { name, config, database }: WorkerOptions,
  listen: (message: WorkerEvent) => void,
): Thread {
  const { port1: toDatabase, port2: port } = new MessageChannel();
  serveWrites(database, port);
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const worker = new Worker(new URL(`./worker_thread${extension}`, import.meta.url), {
    workerData: { role: "gatepost-post", name, settings: settingsOf(config), toDatabase },
    transferList: [toDatabase],
  });
  let fault: Error | undefined;
  worker.on("message", listen);
  worker.on("error", (error: Error) => {
    fault = error;
  });
  const ended = new Promise<Error | undefined>((resolve) => {
    worker.once("exit", () => {
      port.close();
      resolve(fault);
    });
  });
  return {
    say: (message) => worker.postMessage(message),
    ended,
    terminate: () => void worker.terminate(),
  };
}

/** What the thread needs and no more: passwords are none of its business. */
function settingsOf(config: WorkerSettings): WorkerSettings {
  const { databasePath, secretKeys, callbackAllow, callbackTimeoutMs, callbackConcurrency } = config;
  const { callbackConcurrencyPerSubscription, resendDelaysMs, disableAfterMs } = config;
  return {
    databasePath,
    secretKeys,
    callbackAllow,
    callbackTimeoutMs,
    callbackConcurrency,
    callbackConcurrencyPerSubscription,
    resendDelaysMs,
    disableAfterMs,
  };
}
