import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { newId } from "../../src/base/id.ts";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import { insertEvent } from "../../src/store/events.ts";
import { fanOut, listPendingEvents } from "../../src/store/fan_out.ts";
import { addUser, openDatabase } from "../helpers/database.ts";
import {
  createProcess,
  type Process,
  type ProcessOptions,
  SEAL,
  type Shared,
} from "../helpers/distributor_process.ts";
import { until } from "../helpers/until.ts";

export const START_MS = Date.UTC(2026, 10, 20, 12, 0, 0);
export const SECRET = formatSigningSecret(new Uint8Array(32).fill(7));

/** A database, and the processes that distribute its events. */
export interface Stage extends Shared {
  startProcess(options?: ProcessOptions): Process;
  /** Starts a process, wakes it, and waits until it is idle. */
  runProcess(options?: ProcessOptions): Promise<Process>;
  /** Makes a subscription to event "e" and returns its id. */
  subscribe(endpoint?: string): Promise<string>;
  /** Makes `count` subscriptions to event "e", each with an endpoint of its own. */
  subscribeMany(count: number, domain?: string): Promise<void>;
  /** Dispatches `count` events. */
  dispatch(count?: number, name?: string): Promise<void>;
  /** How many deliveries have each status. */
  counts(): Promise<Readonly<Record<string, number>>>;
  /** Waits until this many deliveries have succeeded. */
  untilDelivered(count: number): Promise<void>;
  write(...statements: readonly Sql[]): Promise<unknown>;
  rows(statement: Sql): Promise<Readonly<Record<string, unknown>>[]>;
  /** The database, with `handle` in place of each write that has this text in a statement. */
  intercept(text: string, handle: WriteHandler): InterceptedDatabase;
  /** The database, whose first `times` writes with this text fail. */
  failing(text: string, times: number): InterceptedDatabase;
}

type Stored = ReturnType<Database["write"]>;
/** Handles the `nth` of some writes, counted from 1; `store` passes it to the database. */
type WriteHandler = (store: () => Stored, nth: number) => Stored;

interface InterceptedDatabase extends Database {
  /** How many writes have been intercepted. */
  seen(): number;
}

/** Opens a new database with subscriptions to event "e", then dispatches so many events "e". */
export async function openStage(
  t: TestContext,
  { subscriptions = 0, events = 0 } = {},
): Promise<Stage> {
  const processes: Process[] = [];
  t.after(async () => {
    for (const { open } of processes) for (const attempt of [...open]) attempt.end(204);
    await Promise.all(processes.map(({ distributor }) => distributor.stop(0)));
  });
  const database = openDatabase(t);
  let made = 0;
  const stage: Stage = {
    database,
    nowMs: START_MS,
    setBackMs: 0,
    isClockWrong: false,
    startProcess(options = {}) {
      const process = createProcess(stage, options);
      processes.push(process);
      return process;
    },
    async runProcess(options) {
      const process = stage.startProcess(options);
      await process.run();
      return process;
    },
    async subscribe(endpoint = `http://${made++}.example/`) {
      const id = newId("s", stage.nowMs);
      const principal = await addUser(database, { createdAtMs: stage.nowMs });
      await stage.write(sql`INSERT INTO subscriptions
          (id, principal, app, event, endpoint, status, secret, createdAtMs)
        VALUES (${id}, ${principal}, 'login', 'e', ${endpoint}, 'active',
          ${SEAL.encrypt(SECRET, id)}, ${stage.nowMs})`);
      return id;
    },
    async subscribeMany(count, domain = "example") {
      const endpoints = Array.from({ length: count }, () => `http://${made++}.${domain}/`);
      await Promise.all(endpoints.map(stage.subscribe));
    },
    async dispatch(count = 1, name = "e") {
      await stage.write(...Array.from({ length: count }, (_, index) => insertEvent({
        id: newId("e", stage.nowMs),
        name,
        json: String(index),
        subject: undefined,
        createdAtMs: stage.nowMs,
      })));
    },
    async counts() {
      const rows = await database.query<{ status: string; n: number }>(
        sql`SELECT status, count(*) AS n FROM deliveries GROUP BY status`,
      );
      return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
    },
    async untilDelivered(count) {
      await until(
        async () => (await stage.counts())["delivered"] === count,
        async () => `deliveries are ${JSON.stringify(await stage.counts())}`,
      );
    },
    write: (...statements) => database.write(statements),
    rows: async (statement) =>
      (await database.query<object>(statement)).map((row) => ({ ...row })),
    intercept: (text, handle) => intercept(database, text, handle),
    failing: (text, times) =>
      intercept(database, text, (store, nth) =>
        nth > times ? store() : Promise.reject(new UnavailableError("the disk is full"))),
  };
  await stage.subscribeMany(subscriptions);
  if (events > 0) await stage.dispatch(events);
  return stage;
}

function intercept(database: Database, text: string, handle: WriteHandler): InterceptedDatabase {
  let seen = 0;
  return {
    ...database,
    seen: () => seen,
    write(statements) {
      const store = () => database.write(statements);
      return statements.some(({ sql }) => sql.includes(text)) ? handle(store, ++seen) : store();
    },
  };
}

/** Makes the deliveries of an event that has been dispatched; nobody claims them. */
export async function makeDeliveries({ database, nowMs }: Stage): Promise<void> {
  const [event] = await listPendingEvents(database, { oldest: 1, newest: 0 });
  assert.ok(event);
  const part = { event, end: event.lastSubscription, claimed: [] };
  await fanOut(database, [part], "", 0, nowMs);
}

/** A process whose first claim waits for the test. */
export function startGated(stage: Stage) {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wait: WriteHandler = async (store) => {
    reached.resolve();
    await opened.promise;
    return store();
  };
  const database = intercept(stage.intercept("INTO deliveries", wait), "SET claim = ?", wait);
  const process = stage.startProcess({ database, respond: 204 }).wake();
  return { process, reached: reached.promise, open: opened.resolve };
}
