import { idOf, idTimeMs } from "../base/id.ts";
import { described, type InferMembers, oneOf } from "../base/shape.ts";
import { type Delivery, ManagedDelivery } from "../event/delivery_record.ts";
import { type Change, updateWhere } from "./audit.ts";
import { AT_MOST, BATCH } from "./batch.ts";
import { type Database, limitTo } from "../database/database.ts";
import { findItem, findRow } from "../database/rows.ts";
import { joinSql, listOf, sql, type Sql } from "../database/sql.ts";
import { DELIVERY_LIST, isOfSubscription } from "./delivery_lists.ts";
import { is, narrow, WANTED } from "./list.ts";
import { earlierDue, IS_OPEN } from "./subscriptions.ts";

/** Holds for deliveries that may be resent: pending ones only if neither in flight nor due. */
function isSendable(status: Delivery["status"], timeMs: number): Sql {
  const isOpen = isOfSubscription(sql`s.${IS_OPEN}`);
  return status === "pending" ? sql`${isOpen} AND claim IS NULL AND dueAtMs > ${timeMs}` : isOpen;
}

/** Sends a test event to a subscription; the first statement changes 0 rows if it has ended. */
export function insertTestDelivery(
  { subscription, event, delivery, json }:
    Readonly<Record<"subscription" | "event" | "delivery" | "json", string>>,
  nowMs: number,
): Sql[] {
  const isSendable = sql`id = ${subscription} AND ${IS_OPEN}`;
  return [
    sql`INSERT INTO events (id, name, data, subject, scopes, status, lastSubscription, fannedOut,
        createdAtMs)
      SELECT ${event}, event, ${json}, principal, '[]', 'distributed', seq, seq, ${nowMs}
      FROM subscriptions WHERE ${isSendable}`,
    sql`INSERT INTO deliveries (id, event, subscription, status, dueAtMs)
      SELECT ${delivery}, ${event}, seq, 'pending', ${nowMs}
      FROM subscriptions WHERE ${isSendable}`,
    sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(nowMs)} WHERE ${isSendable}`,
  ];
}

/** Resends deliveries; the first statement changes one row for each that can be resent. */
export function resendDeliveries(
  ids: readonly string[],
  nowMs: number,
  status: Delivery["status"] = "failed",
  when = isSendable(status, nowMs),
): Change[] {
  return [
    updateWhere(sql`deliveries`, sql`status = 'pending', attempt = 0, dueAtMs = ${nowMs},
        finishedAtMs = NULL`,
      sql`id IN ${listOf(ids)} AND status = ${status} AND ${when}`),
    sql`UPDATE subscriptions SET dueAtMs = ${earlierDue(nowMs)} WHERE seq IN
      (SELECT subscription FROM deliveries WHERE id IN ${listOf(ids)} AND status = 'pending')`,
  ];
}

/** The filters that select the deliveries to resend. */
export const SELECTION = {
  ...DELIVERY_LIST.filters,
  status: ManagedDelivery.members.status,
} as const;

type Selection = InferMembers<typeof SELECTION>;

/** A job that resends deliveries, batch by batch, in the order of their events' dispatch. */
export interface Resend {
  readonly id: string;
  /** Who asked for it. */
  readonly actor: string;
  readonly selection: Selection;
  readonly state: (typeof RESEND_STATES)[number];
  /** The last delivery that the job has reached. */
  readonly reached: string;
  /** Sorts after the last delivery to resend: with later ones the job might never end. */
  readonly bound: string;
  /** How many were to be sent when the job began, and how many have been sent. */
  readonly total: number;
  readonly done: number;
  readonly endedAtMs: number | null;
}

type ResendRow = Omit<Resend, "selection"> & { readonly selection: string };

export const RESEND_STATES = ["running", "stopped", "done"] as const;

/** Makes a resend that has not begun. */
export function newResend(id: string, actor: string, selection: Selection): Resend {
  const { from, before = "~" } = narrow(DELIVERY_LIST.filters, selection);
  const now = `d${id.slice(1)}`;
  const bound = before < now ? before : now;
  const begun = { state: "running", reached: from, total: 0, done: 0, endedAtMs: null } as const;
  return { id, actor, selection, bound, ...begun };
}

/** The rows to examine, by an index, and the condition for those to send. */
function selected({ id, selection, reached, bound }: Resend): Record<"rows" | "isSelected", Sql> {
  const { conditions } = narrow(DELIVERY_LIST.filters, selection);
  const those = (areIndexed: boolean) =>
    conditions.filter(({ name }) => areIndexed === name in DELIVERY_LIST.indexes)
      .map(({ condition }) => condition);
  return {
    rows: sql`deliveries WHERE ${joinSql(those(true), " AND ")}
      AND id > ${reached} AND id < ${bound} ORDER BY id`,
    isSelected: joinSql([...those(false), isSendable(selection.status, idTimeMs(id))], " AND "),
  };
}

const COUNTED_AT_ONCE = 5000;
/** How many rows are examined in all to count. */
const COUNT_LIMIT = 1_000_000;

/** Counts the deliveries that a resend would send, and finds the first of them. */
export async function countResend(database: Database, resend: Resend) {
  let { reached } = resend;
  let count = 0;
  let first: string | undefined;
  for (let looked = 0; looked < COUNT_LIMIT; looked += COUNTED_AT_ONCE) {
    const { rows, isSelected } = selected({ ...resend, reached });
    type Row = Record<"looked" | "count", number> & Record<"last" | "first", string | null>;
    const part = await findRow<Row>(
      database,
      sql`SELECT count(*) AS looked, max(id) AS last, ifnull(sum(isSelected), 0) AS count,
        min(iif(isSelected, id, NULL)) AS first
      FROM (SELECT id, ${isSelected} AS isSelected FROM ${rows} ${limitTo(COUNTED_AT_ONCE)})`,
    );
    count += part?.count ?? 0;
    first ??= part?.first ?? undefined;
    if (!part?.last || part.looked < COUNTED_AT_ONCE) break;
    reached = part.last;
    await new Promise((resolve) => setImmediate(resolve)); // a query alone lets nothing else run
  }
  return { count, first };
}

/** Stores a resend; 0 rows change while another one of the same subscription runs. */
export function insertResend(resend: Resend): Change {
  const { id, actor, selection, state, reached, bound, total } = resend;
  const isFree = sql`NOT EXISTS (SELECT 1 FROM resends
    WHERE state = 'running' AND selection ->> 'subscription' = ${selection.subscription ?? null})`;
  const insert = sql`INSERT INTO resends (id, actor, selection, state, reached, bound, total)
    SELECT ${id}, ${actor}, ${JSON.stringify(selection)}, ${state}, ${reached}, ${bound}, ${total}
    WHERE ${isFree}`;
  return { ...insert, when: isFree };
}

const toResend = (row: ResendRow): Resend =>
  ({ ...row, selection: JSON.parse(row.selection) });

export const RESEND_LIST = {
  table: sql`resends`,
  columns: sql`*`,
  filters: {
    state: is(sql`state`, oneOf(...RESEND_STATES)),
    subscription: is(sql`selection ->> 'subscription'`, described("The subscription.", idOf("s"))),
    actor: is(sql`actor`, described("The id of who started it.", WANTED)),
  },
  indexes: {},
  toItem: toResend,
} as const;

/** A resend by id, in whatever state. */
export function findResend(database: Database, id: string): Promise<Resend | undefined> {
  return findItem(database, sql`SELECT * FROM resends WHERE id = ${id}`, toResend);
}

/** Stops a resend; deliveries that it has not reached stay as they are. */
export function stopResend(id: string, nowMs: number): Change {
  return updateWhere(sql`resends`, sql`state = 'stopped', endedAtMs = ${nowMs}`,
    sql`id = ${id} AND state = 'running'`);
}

/** How many resends advance in turn. */
const AT_ONCE = 4;

/** Sends the next deliveries of running resends; false if none is running. */
export async function continueResends(database: Database, nowMs: number): Promise<boolean> {
  const select = sql`SELECT * FROM resends WHERE state = 'running' ORDER BY id ${limitTo(AT_ONCE)}`;
  const rows = await database.query<ResendRow>(select);
  for (const row of rows) await continueResend(database, toResend(row), nowMs);
  return rows.length > 0;
}

/** Sends the next deliveries of a resend and advances it in one batch, so none is sent twice. */
export async function continueResend(database: Database, resend: Resend, nowMs: number) {
  const { id, selection: { status }, reached } = resend;
  const { rows, isSelected } = selected(resend);
  const found = await database.query<Pick<Resend, "id">>(sql`SELECT id FROM ${rows} ${AT_MOST}`);
  const ids = found.map((row) => row.id);
  const isNext = sql`id = ${id} AND state = 'running' AND reached = ${reached}`;
  const when = sql`${isSelected} AND EXISTS (SELECT 1 FROM resends WHERE ${isNext})`;
  const [state, endedAtMs] = ids.length < BATCH ? ["done", nowMs] : ["running", null];
  await database.write([
    sql`UPDATE resends SET done = done + (SELECT count(*) FROM deliveries
        WHERE id IN ${listOf(ids)} AND status = ${status} AND ${isSelected}) WHERE ${isNext}`,
    ...resendDeliveries(ids, nowMs, status, when),
    sql`UPDATE resends SET reached = ${ids.at(-1) ?? reached}, state = ${state},
        endedAtMs = ${endedAtMs} WHERE ${isNext}`,
  ]);
}
