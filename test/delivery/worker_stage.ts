import { join } from "node:path";
import type { TestContext } from "node:test";
import type { ServiceMetrics } from "../../src/app/metrics.ts";
import { newId } from "../../src/base/id.ts";
import type { Log } from "../../src/base/log.ts";
import { createSeal } from "../../src/base/seal.ts";
import type { Config } from "../../src/config.ts";
import type { Database } from "../../src/database/database.ts";
import type { OpenDatabase } from "../../src/database/engine.ts";
import { sql } from "../../src/database/sql.ts";
import { createDeliveryWorker, type DeliveryWorker } from "../../src/delivery/worker.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import type { SelfTest } from "../../src/outbound/egress.ts";
import { insertEvent } from "../../src/store/events.ts";
import { configOf } from "../helpers/config.ts";
import { addUser, makeFolder, openSqliteFile } from "../helpers/database.ts";
import { startReceiver } from "../helpers/receiver.ts";

export interface Stage {
  readonly worker: DeliveryWorker;
  readonly started: Promise<SelfTest>;
  readonly config: Config;
  readonly folder: string;
  readonly database: Database;
  /** Lines of the log: level, message and fields. */
  readonly logged: unknown[][];
  readonly attempts: [string, number][];
}

type Opened = Pick<OpenDatabase, keyof Database | "connect">;

/** Starts a worker on a new database, or on the one that is `opened`, until the test ends. */
export function open(t: TestContext, more: Record<string, string> = {}, opened?: Opened): Stage {
  const folder = makeFolder(t);
  const databasePath = join(folder, "gatepost.db");
  const config = configOf({
    GATEPOST_DATABASE: databasePath,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_RESEND_DELAYS: "none",
    ...more,
  });
  const database = opened ?? openSqliteFile(t, databasePath);
  const logged: unknown[][] = [];
  const attempts: [string, number][] = [];
  const at = (level: string): Log["info"] => (...line) => void logged.push([level, ...line]);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const metrics: ServiceMetrics = {
    count() {},
    observe: (_name, [outcome = ""], seconds) => void attempts.push([outcome, seconds]),
    format: () => Promise.resolve(""),
  };
  const { connect } = database;
  const worker = createDeliveryWorker({
    name: "c1", config, log, metrics, connect, receivers: undefined,
  });
  t.after(() => worker.stop(0));
  return { worker, started: worker.start(), config, folder, database, logged, attempts };
}

/** The same with a receiver; the events are sent to its path /a once the worker has started. */
export async function openWithReceiver(t: TestContext, more: Record<string, string> = {}) {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const stage = open(t, more);
  await subscribe(stage, `${receiver.url}/a`);
  await stage.started;
  return { ...stage, receiver };
}

/** Stores a user with an active subscription to the event e. */
export async function subscribe({ database, config }: Stage, endpoint: string): Promise<void> {
  const id = newId("s", Date.now());
  const secret = formatSigningSecret(new Uint8Array(32).fill(7));
  const user = await addUser(database);
  const encrypted = createSeal(...config.secretKeys ?? []).encrypt(secret, id);
  await database.write([sql`
    INSERT INTO subscriptions (id, principal, app, event, endpoint, status, secret, createdAtMs)
    VALUES (${id}, ${user}, 'login', 'e', ${endpoint}, 'active', ${encrypted}, ${Date.now()})`]);
}

/** Dispatches the event e that many times. */
export async function dispatch({ database, worker }: Stage, count: number): Promise<void> {
  const createdAtMs = Date.now();
  await database.write(Array.from({ length: count }, (_, index) =>
    insertEvent({
      id: newId("e", createdAtMs),
      name: "e",
      json: String(index),
      subject: undefined,
      createdAtMs,
    })
  ));
  worker.wake();
}

export const countDelivered = async (database: Database) => {
  const rows = await database.query(sql`SELECT 1 FROM deliveries WHERE status = 'delivered'`);
  return rows.length;
};
