import { type MessagePort, Worker } from "node:worker_threads";
import type { DistributorState } from "../event/distributor_state.ts";
import type { Services } from "../services.ts";
import type { SelfTest } from "./egress.ts";
import { createThreadSupervisor, type Thread } from "./thread_supervisor.ts";
import {
  WORKER_ROLE,
  WORKER_SETTINGS,
  type WorkerEvent,
  type WorkerReport,
} from "./worker_messages.ts";

/** What the worker is made with; `name` is that of this process, which its claims carry. */
export type WorkerOptions = Pick<Services, "config" | "log" | "metrics"> & {
  readonly name: string;
  /** Makes a port to the database's writer. */
  readonly connect: () => MessagePort;
};

type Report = Omit<WorkerReport, "attempts">;

/** Delivery, in a thread of its own. */
export interface DeliveryWorker {
  /**
   * Starts the thread, which takes a while to load. Resolves with what the address guard's test
   * found, without which nothing is sent; never where `stop` comes first.
   */
  start(): Promise<SelfTest>;
  wake: Services["wake"];
  /** Has it take over what processes that have ended had claimed, and look for work. */
  look(): Promise<void>;
  state(): DistributorState;
  report(): Report;
  /** Awaits attempts in flight for at most `graceMs`, aborts the rest, requeues unsent work. */
  stop(graceMs: number): Promise<void>;
}

// Beyond the grace: to record what came of the attempts. What is not recorded is taken over.
const STOP_MARGIN_MS = 5_000;
const STUCK_AFTER_MS = 30_000;
const NO_REPORT: Report = { quietMs: Infinity, inFlight: 0, want: undefined };

/**
 * Makes the thread that distributes events and sends callbacks. It is apart from the one that
 * serves requests, because `fetch` keeps a thread busy, by its work and by what it leaves to be
 * collected, and requests shall not wait for it. Should it die (an uncaught error there), another
 * takes its place and its claims.
 */
export function createDeliveryWorker(options: WorkerOptions): DeliveryWorker {
  const { config, log, metrics } = options;
  const tested = Promise.withResolvers<SelfTest>();
  // Timed by a clock that is never set.
  let last = { report: NO_REPORT, atMs: performance.now() };
  let looking: PromiseWithResolvers<void> | undefined;
  let isWoken = false;

  const supervisor = createThreadSupervisor(
    () => startThread(options, receive),
    (error, pauseMs) => {
      last = { report: NO_REPORT, atMs: performance.now() };
      log.error("delivery has died and is started again", { error, pause_ms: pauseMs });
    },
  );

  function receive(event: WorkerEvent): void {
    switch (event.kind) {
      case "started":
        return tested.resolve(event.test);
      case "looked":
        return event.error === undefined
          ? looking?.resolve()
          : looking?.reject(new Error(event.error));
      case "report":
        for (const { isSuccess, ms } of event.attempts) {
          const outcome = isSuccess ? "success" : "failure";
          metrics.count("gatepost_delivery_attempts_total", [outcome]);
          metrics.observe("gatepost_delivery_attempt_duration_seconds", [outcome], ms / 1000);
        }
        last = { report: event, atMs: performance.now() };
        return;
      case "log":
        return log[event.level](event.msg, event.fields);
      default:
        event satisfies never;
    }
  }

  const quietMs = () => last.report.quietMs + performance.now() - last.atMs;

  return {
    start() {
      supervisor.start();
      return tested.promise;
    },
    wake() {
      if (isWoken) return;
      isWoken = true; // once for all that is dispatched in this turn of the loop
      setImmediate(() => {
        isWoken = false;
      });
      supervisor.thread()?.post({ kind: "wake" });
    },
    look() {
      const thread = supervisor.thread();
      looking = Promise.withResolvers();
      thread?.post({ kind: "look" });
      return Promise.race([looking.promise, thread?.ended.then(() => {})]);
    },
    state() {
      if (!config.cron) return "off";
      return quietMs() > config.distributeIntervalMs + STUCK_AFTER_MS ? "stuck" : "on";
    },
    report: () => ({ ...last.report, quietMs: quietMs() }),
    async stop(graceMs) {
      supervisor.stop();
      const thread = supervisor.thread();
      thread?.post({ kind: "stop", graceMs });
      const margin = setTimeout(() => thread?.terminate(), graceMs + STOP_MARGIN_MS);
      await thread?.ended;
      clearTimeout(margin);
    },
  };
}

function startThread(
  { name, config, connect }: WorkerOptions,
  receive: (event: WorkerEvent) => void,
): Thread {
  const toDatabase = connect();
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const settings = Object.fromEntries(WORKER_SETTINGS.map((key) => [key, config[key]]));
  const worker = new Worker(new URL(`./worker_thread${extension}`, import.meta.url), {
    workerData: { role: WORKER_ROLE, name, settings, toDatabase },
    transferList: [toDatabase],
  });
  const ended = Promise.withResolvers<Error | undefined>();
  let failure: Error | undefined;
  worker.on("message", receive);
  worker.on("error", (error: Error) => {
    failure = error;
  });
  worker.once("exit", () => ended.resolve(failure));
  return {
    post: (request) => worker.postMessage(request),
    ended: ended.promise,
    terminate: () => void worker.terminate(),
  };
}
