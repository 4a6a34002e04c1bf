import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { randomBytes } from "../../src/base/secret.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import { sql, type Sql } from "../../src/database/sql.ts";
import { insertEvent } from "../../src/store/events.ts";
import { deliveryId } from "../../src/store/fan_out.ts";
import { earlierDue, insertSubscription } from "../../src/store/subscriptions.ts";
import { insertUser } from "../../src/store/users.ts";
import { startPostServer } from "./post_process.ts";

/** Subscriptions to add to a database, and what each of them has. */
export interface SeedGroup {
  readonly endpoints: readonly string[];
  readonly event: string;
  /** Deliveries for each. */
  readonly deliveries: number;
  /** Pending by default. */
  readonly status?: "pending" | "delivered";
  /** Whether the subscriptions are paused until `activate`. */
  readonly paused?: boolean;
}

export const PAYLOAD = JSON.stringify({
  id: 7_031_945,
  item: "lamp",
  note: "leave it with the neighbour at number 12, second floor",
  by: "u0mkf3q1c000aaaaaaaaaaaa",
});

const ROWS_A_COMMIT = 20_000;

/**
 * Makes a folder with a database: schema and user admin by a start of the server, then the rows.
 */
export async function seedFolder(folder: string, groups: readonly SeedGroup[]): Promise<string> {
  mkdirSync(folder);
  await startPostServer(folder, { GATEPOST_CRON: "off" }).then(({ stop }) => stop("SIGTERM"));
  seed(folder, groups);
  return folder;
}

/** A copy for one round. */
export function copyFolder(from: string, to: string): string {
  mkdirSync(to);
  copyFileSync(join(from, "gatepost.db"), join(to, "gatepost.db"));
  return to;
}

/** Adds rows to a database; returns the numbers of each group's subscriptions. */
export function seed(folder: string, groups: readonly SeedGroup[]): number[][] {
  return withDatabase(folder, (run) => groups.map((group) => seedGroup(group, run)));
}

/** Adds pending deliveries for existing subscriptions at once, beside a running server. */
export function seedMore(
  folder: string,
  { subscriptions, event, deliveries }: {
    readonly subscriptions: readonly number[];
    readonly event: string;
    readonly deliveries: number;
  },
): void {
  const group = { event, deliveries, status: "pending" } as const;
  withDatabase(folder, (run) => addDeliveries(group, subscriptions, run));
}

/** Activates the paused subscriptions of an event at once, beside a running server. */
export function activate(folder: string, event: string): void {
  withDatabase(folder, (run) =>
    run(sql`UPDATE subscriptions SET status = 'active' WHERE event = ${event}`));
}

type Run = (statement: Sql) => number;

/** Runs statements, with a commit after every ROWS_A_COMMIT of them. */
function withDatabase<Result>(folder: string, work: (run: Run) => Result): Result {
  const database = new DatabaseSync(join(folder, "gatepost.db"), { timeout: 5000 });
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN IMMEDIATE");
  const prepared = new Map<string, StatementSync>();
  let rows = 0;
  const result = work(({ sql, params }) => {
    if (++rows % ROWS_A_COMMIT === 0) database.exec("COMMIT; BEGIN IMMEDIATE");
    const statement = prepared.get(sql) ?? database.prepare(sql);
    prepared.set(sql, statement);
    return Number(statement.run(...params).lastInsertRowid);
  });
  database.exec("COMMIT");
  database.close();
  return result;
}

function seedGroup(group: SeedGroup, run: Run): number[] {
  const { endpoints, event, deliveries, status = "pending" } = group;
  const createdAtMs = Date.now();
  const seal = createSeal(undefined);
  const grant = { id: newId("g", createdAtMs), scopes: ["consumer"] };
  run(sql`INSERT INTO grants (id, app, type, scopes, refreshUntilMs, accessUntilMs)
    VALUES (${grant.id}, 'login', 'login', '["consumer"]', 0, 0)`);
  const subscriptions = endpoints.map((endpoint) => {
    const principal = newId("u", createdAtMs);
    const user = { id: principal, username: principal, phc: "", scopes: ["consumer"] };
    run(insertUser({ ...user, createdAtMs }));
    return run(insertSubscription({
      id: newId("s", createdAtMs),
      principal,
      app: "login",
      event,
      endpoint,
      secret: formatSigningSecret(randomBytes(32)),
      createdAtMs,
      grant,
    }, seal));
  });
  addDeliveries({ event, deliveries, status }, subscriptions, run);
  if (group.paused) run(sql`UPDATE subscriptions SET status = 'paused' WHERE event = ${event}`);
  return subscriptions;
}

function addDeliveries(
  { event, deliveries, status }: Required<Pick<SeedGroup, "event" | "deliveries" | "status">>,
  subscriptions: readonly number[],
  run: Run,
): void {
  const createdAtMs = Date.now();
  for (let index = 0; index < deliveries; index++) {
    const id = newId("e", createdAtMs);
    run(insertEvent({ id, name: event, json: PAYLOAD, subject: undefined, createdAtMs }));
    for (const number of subscriptions) {
      run(sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs, finishedAtMs)
        VALUES (${deliveryId(id, number)}, ${id}, ${number}, ${status}, ${createdAtMs},
          ${status === "pending" ? null : createdAtMs})`);
    }
  }
  run(sql`UPDATE events SET status = 'distributed', fannedOut = lastSubscription
    WHERE name = ${event} AND status = 'pending'`);
  if (status !== "pending" || deliveries === 0) return;
  for (const number of subscriptions) {
    run(sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(createdAtMs)} WHERE seq = ${number}`);
  }
}
