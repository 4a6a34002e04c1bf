import type { MessagePort, Worker } from "node:worker_threads";
import { startThread } from "../database/start_thread.ts";
import type { WatchDeliveries } from "../event/delivery_record.ts";
import type { DistributorState } from "../event/distributor_state.ts";
import type { Services } from "../services.ts";
import type { SelfTest } from "../outbound/egress.ts";
import { createThreadSupervisor } from "./thread_supervisor.ts";
import { WORKER_SETTINGS, type WorkerEvent, type WorkerReport } from "./worker_messages.ts";

/** What the worker is made with; `name` is the name of this process, which its claims carry. */
type WorkerOptions = Pick<Services, "config" | "log" | "metrics" | "receivers"> & {
  readonly name: string;
  /** Makes the port by which the thread reaches the database, if it needs one. */
  readonly connect: () => MessagePort | undefined;
};

/** The delivery worker, which runs in a thread of its own. */
export type DeliveryWorker = ReturnType<typeof createDeliveryWorker>;

// Time beyond the grace to record the attempts. Another process takes over what is not recorded.
const STOP_MARGIN_MS = 5_000;
const STUCK_AFTER_MS = 30_000;
const NO_REPORT: WorkerReport =
  { quietMs: Infinity, inFlight: 0, want: undefined, attempts: [], changed: [] };

/**
 * Makes the thread that distributes events and sends callbacks. Requests are served by another
 * thread, because `fetch` keeps its thread busy with its own work and with garbage collection. If
 * the delivery thread dies (by an uncaught error), a new one takes over its work and claims.
 */
export function createDeliveryWorker(options: WorkerOptions) {
  const { config, log, metrics } = options;
  const tested = Promise.withResolvers<SelfTest>();
  // By a clock that is never set. It starts with 0, since a thread that loads is not stuck.
  let last = { report: { ...NO_REPORT, quietMs: 0 }, atMs: performance.now() };
  let looking: PromiseWithResolvers<void> | undefined;
  let watcher: WatchDeliveries | undefined;

  const supervisor = createThreadSupervisor(
    () => startWorker(options, receive),
    (error, pauseMs) => {
      last = { report: NO_REPORT, atMs: performance.now() };
      log.error("delivery has died and is started again", { error, pause_ms: pauseMs });
    },
  );

  function receive(event: WorkerEvent): void {
    switch (event.kind) {
      case "started":
        if (!event.test.ok) last = { report: NO_REPORT, atMs: performance.now() };
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
        return watcher?.(event.changed);
      case "log":
        return log[event.level](...event.line);
      default:
        event satisfies never;
    }
  }

  return {
    /**
     * Starts the thread, which takes a while to load. Resolves with the result of the address
     * guard's self-test, before which nothing is sent. Never resolves if `stop` comes first.
     */
    start(): Promise<SelfTest> {
      supervisor.start();
      return tested.promise;
    },
    /** Has the thread look for work, once for all dispatches in this turn of the event loop. */
    wake: oncePerTurn(() => void supervisor.post({ kind: "wake" })),
    /** Has the thread take over the claims of processes that have ended, and look for work. */
    look(): Promise<void> {
      looking = Promise.withResolvers();
      if (!supervisor.post({ kind: "look" })) looking.resolve();
      return looking.promise;
    },
    /** Reports changed deliveries to `told`, while the thread lives; of very many only some. */
    watch(told: WatchDeliveries | undefined): void {
      watcher = told;
      supervisor.post({ kind: "watch", isWatched: told !== undefined });
    },
    state(): DistributorState {
      if (!config.cron) return "off";
      const quietMs = last.report.quietMs + performance.now() - last.atMs;
      return quietMs > config.distributeIntervalMs + STUCK_AFTER_MS ? "stuck" : "on";
    },
    report: (): WorkerReport => last.report,
    /** Awaits attempts in flight for at most `graceMs`, aborts the rest, requeues unsent work. */
    stop: (graceMs: number) =>
      supervisor.stop({ kind: "stop", graceMs }, graceMs + STOP_MARGIN_MS),
  };
}

function oncePerTurn(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    setImmediate(() => {
      isDone = false;
    });
    act();
  };
}

function startWorker(
  { name, config, receivers, connect }: WorkerOptions,
  receive: (event: WorkerEvent) => void,
): Worker {
  const toDatabase = connect();
  // The same module runs as source (.ts) and as built (.js).
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const settings = Object.fromEntries(WORKER_SETTINGS.map((key) => [key, config[key]]));
  const url = new URL(`./worker_entry${extension}`, import.meta.url);
  const workerData = { name, settings, receivers: receivers?.at, toDatabase };
  return startThread(url, { workerData, transferList: toDatabase ? [toDatabase] : [] })
    .on("message", receive)
    .once("exit", () => receive({ kind: "looked" })); // the thread sends no other response now
}
