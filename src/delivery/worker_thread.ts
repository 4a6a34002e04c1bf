import { setTimeout as sleep } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { describeFields, type Log, type LogLevel } from "../base/log.ts";
import { messageOf } from "../base/message_of.ts";
import { createRepeatCheck } from "../base/repeated.ts";
import { createSeal } from "../base/seal.ts";
import { createSteadyClock } from "../base/steady_clock.ts";
import { longestWaitMs } from "../event/delivery.ts";
import { createCallbackSender } from "./callback.ts";
import { createClockWatch } from "./clock_watch.ts";
import { createDistributor } from "./distributor.ts";
import { createEgress } from "../outbound/egress.ts";
import { takeOver, takeOverDeliveries } from "./take_over.ts";
import { testGuard } from "./test_guard.ts";
import { openInThread } from "../database/engine_in_thread.ts";
import { measureAges } from "../store/backlog.ts";
import { correctTimesAhead } from "../store/clock_shift.ts";
import { createFigureCounter } from "../store/figures.ts";
import type { WorkerEvent, WorkerReport, WorkerRequest, WorkerStart } from "./worker_messages.ts";

const REPORT_INTERVAL_MS = 250;
const FIGURES_INTERVAL_MS = 1_000;
const CLOCK_INTERVAL_MS = 1_000;
const OVERDUE_INTERVAL_MS = 10_000;

/** Runs the delivery worker in its thread. `worker.ts` starts it and says why. */
export async function runWorker(port: MessagePort, start: WorkerStart) {
  const { name, settings, receivers, toDatabase } = start;
  const send = (message: WorkerEvent) => port.postMessage(message);
  const log = createForwardedLog(send);
  process.on("unhandledRejection", (error) => log.error("unhandled rejection", { error }));
  const clock = createSteadyClock(Date.now, () => performance.now());
  const { now } = clock;
  const { database, presence, clockCheck } = await openInThread(settings, toDatabase, name);
  const startAgain = () => {
    throw new Error("The writer of the database has ended");
  };
  toDatabase?.on("close", startAgain);
  const timeoutMs = settings.callbackTimeoutMs;
  const egress = createEgress({
    allow: settings.callbackAllow,
    receivers,
    connectionsPerOrigin: settings.callbackConcurrency,
    timeoutMs,
  });
  /** The attempts and changed deliveries since the last report. */
  const attempts: WorkerReport["attempts"][number][] = [];
  const changed: WorkerReport["changed"][number][] = [];
  let isWatched = false;
  const figures = createFigureCounter(database, now);
  const watch = createClockWatch({ database, log }, clock, clockCheck, () => distributor);
  const distributor = createDistributor({
    database,
    settings,
    claim: name,
    callbacks: createCallbackSender({ egress, timeoutMs, now }),
    seal: createSeal(...settings.secretKeys ?? []),
    log,
    now,
    elapsedMs: () => performance.now(),
    isClockRight: watch.isRight,
    random: Math.random,
    observe({ id, subscriptionId: subscription }, isSuccess, isLast, ms) {
      attempts.push({ isSuccess, ms });
      for (const key of ["deliveries", subscription]) {
        figures.add(key, isSuccess, isLast && !isSuccess, ms);
      }
      if (isWatched) changed.push({ id, subscription });
    },
  });

  const report = () => {
    send({
      kind: "report",
      quietMs: distributor.quietMs(),
      inFlight: distributor.inFlight(),
      want: distributor.shortage(),
      attempts: attempts.splice(0),
      changed: changed.splice(0),
    });
  };
  let reporting: NodeJS.Timeout | undefined;
  const isNew = createRepeatCheck(() => performance.now());
  const storeFigures = () =>
    figures.flush().catch((error: unknown) => {
      if (isNew(messageOf(error))) log.warn("figures cannot be stored", { error });
    });
  setInterval(storeFigures, FIGURES_INTERVAL_MS).unref();

  const stop = async (graceMs: number) => {
    toDatabase?.off("close", startAgain);
    await distributor.stop(graceMs);
    await egress.close();
    await storeFigures();
    await presence.close();
    await database.close();
    report();
    port.close();
  };

  const wake = () => {
    if (reporting) distributor.wake();
  };
  const release = (gone: string) => takeOver({ database, log, now }, gone);
  const look = () =>
    watch.check()
      // A wrong clock would give released work a wrong due time, for other processes too.
      .then(() => watch.isRight() ? presence.forEnded(release) : undefined)
      .finally(wake);

  // Independent of the interval of the looks. An error is ignored: the next check tries again.
  const checkClock = () => watch.isRight() || watch.check().then(wake, () => {});
  setInterval(checkClock, CLOCK_INTERVAL_MS).unref();

  /** Takes over the claims of a dead thread of this process, before this one claims anything. */
  async function takeUp(): Promise<void> {
    await watch.check();
    if (!watch.isRight()) return; // their leases will end
    await takeOverDeliveries({ database, log, now }, name);
    await correctTimesAhead(database, now(), longestWaitMs(settings.resendDelaysMs));
  }
  await takeUp()
    .catch((error: unknown) => log.warn("own claims cannot be taken over", { error }));
  async function countOverdue(): Promise<void> {
    if (!watch.isRight()) return;
    const { overdueSinceMs } = await measureAges(database, now());
    if (overdueSinceMs === undefined) return;
    const lateMs = Math.max(0, now() - overdueSinceMs); // another machine's clock may be ahead
    figures.add("overdue", true, false, lateMs);
  }
  const lookForOverdue = () => countOverdue().catch(() => {}); // the distributor logs such errors
  lookForOverdue(); // deliveries may have become overdue while no server ran
  setInterval(lookForOverdue, OVERDUE_INTERVAL_MS).unref();
  port.on("message", (message: WorkerRequest) => {
    switch (message.kind) {
      case "wake":
        return wake();
      case "look":
        return void look().then(
          () => send({ kind: "looked" }),
          (error: Error) => send({ kind: "looked", error: error.message }),
        );
      case "watch":
        isWatched = message.isWatched;
        return;
      case "stop":
        return void stop(message.graceMs);
      default:
        message satisfies never;
    }
  });
  // Nothing is sent or reported before the guard has refused a connection to its own test listener.
  const test = await testGuard(egress, log, (ms) => sleep(ms, undefined, { ref: false }));
  if (test.ok) {
    reporting = setInterval(report, REPORT_INTERVAL_MS).unref(); // `stop` may have come before
    report();
  }
  send({ kind: "started", test });
  if (!test.ok) return;
  await look().catch((error: unknown) => log.warn("claims cannot be taken over yet", { error }));
}

/** Makes a log whose lines the process writes: one format, one level, one order. */
function createForwardedLog(send: (message: WorkerEvent) => void): Log {
  const at = (level: LogLevel): Log["info"] => (msg, fields = {}) =>
    send({ kind: "log", level, line: [msg, describeFields(fields)] });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
