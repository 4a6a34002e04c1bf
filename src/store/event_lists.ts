import { type Database, type Page, pageOf, type Pagination } from "../database/database.ts";

/** What an event can be. */
export const EVENT_STATUSES = ["pending", "distributed"] as const;

export type EventStatus = typeof EVENT_STATUSES[number];

/** An event as lists show it: without its data. */
export interface EventSummary {
  readonly id: string;
  readonly name: string;
  readonly status: EventStatus;
  readonly subject: string | null;
  readonly scopes: readonly string[];
  readonly createdAtMs: number;
}

/** Which events are wanted; members that are absent do not count. */
export interface EventFilter {
  readonly name?: string | undefined;
  readonly status?: EventStatus | undefined;
}

type EventRow = Omit<EventSummary, "scopes"> & { readonly scopes: string };

const COLUMNS = "id, name, status, subject, scopes, createdAtMs";

function toSummary<Row extends EventRow>(row: Row) {
  return { ...row, scopes: JSON.parse(row.scopes) as string[] };
}

/** An event by id, with its data as JSON. */
export async function findEvent(
  database: Database,
  id: string,
): Promise<EventSummary & { readonly json: string } | undefined> {
  const rows = await database.query<EventRow & { readonly json: string }>(
    `SELECT ${COLUMNS}, data AS json FROM events WHERE id = ?1`,
    [id],
  );
  return rows.map(toSummary)[0];
}

/** Events, newest first. */
export async function listEvents(
  database: Database,
  { name, status }: EventFilter,
  page: Pagination,
): Promise<Page<EventSummary>> {
  const part = `SELECT ${COLUMNS} FROM events
    WHERE id < ?1 ${name === undefined ? "" : "AND name = ?3"}`;
  // Both indexes have the status before the id: each status is read by itself, and they are merged.
  const statuses = status === undefined && name !== undefined ? EVENT_STATUSES : [status];
  const parts = statuses.map((each) =>
    each === undefined ? part : `${part} AND status = '${each}'`
  );
  const rows = await database.query<EventRow>(
    `${parts.join(" UNION ALL ")} ORDER BY id DESC LIMIT ?2`,
    [page.before, page.limit + 1, ...name === undefined ? [] : [name]],
  );
  return pageOf(rows.map(toSummary), page);
}
