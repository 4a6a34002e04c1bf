import type { HttpRequest } from "../base/http_message.ts";
import { conflict, Problem } from "../base/problem.ts";
import { ConflictError } from "../database/database.ts";
import { jsonResponse, NO_STORE } from "../http/respond.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { actorOf, type Change, insertAudit } from "../store/audit.ts";

/** The services that every administrative operation needs. */
export type Administration =
  Pick<Services, "database" | "revocations" | "config" | "wake" | "now">;

/** Who changes something, and by which request. */
export interface Actor {
  readonly caller: Pick<Caller, "sub" | "clientId">;
  readonly request: Pick<HttpRequest, "address">;
}

/**
 * Stores a change and its audit entry in one transaction; no entry if the `when` of the first
 * statement, the change, does not hold. Revocations apply from the next request on, and dispatched
 * events are distributed at once. Returns the number of rows that each statement changed. Throws
 * Problem 409 with `refusal` as its detail if a constraint is broken.
 */
export async function storeAudited(
  { caller, request }: Actor,
  action: string,
  target: string,
  statements: readonly Change[],
  { database, revocations, wake, now }: Administration,
  refusal = "The change conflicts with stored data.",
): Promise<number[]> {
  const entry = { ...actorOf(caller, request), action, target };
  const audit = insertAudit(entry, now(), statements[0]?.when);
  const changes = await database.write([audit, ...statements]).catch(refuseConflict(refusal));
  await revocations.refresh();
  wake();
  return changes.slice(1);
}

/** Returns a `catch` handler that turns a broken constraint into Problem 409 with this detail. */
export function refuseConflict(detail: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ConflictError)) throw error;
    throw conflict(detail, { cause: error });
  };
}

const CHANGE_TRIES = 5;

/**
 * Runs `change`, which reads a record and stores it with changes. Runs it again if another request
 * changed the record in between; throws Problem 409 after five tries.
 */
export async function changeFresh<Result>(change: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await change();
    } catch (error) {
      const isStale = error instanceof Problem && error.code === "conflict";
      if (!isStale || tries === CHANGE_TRIES) throw error;
    }
  }
}

/** Returns what a look-up found; throws Problem 404 if the look-up found nothing. */
export function found<Item>(item: Item | undefined, what: string): Item {
  if (item === undefined) throw notFound(what);
  return item;
}

/** Throws Problem 404 if a change's first statement changed no row: the record is already gone. */
export function checkChanged([first]: readonly number[], what: string): void {
  if (first === 0) throw notFound(what);
}

/**
 * Stores the change or the removal of an existing record, as `storeAudited` does. Throws Problem
 * 404 as `checkChanged` does. `action` begins with the kind of record, as in "app.change".
 */
export async function changeAudited(
  context: Actor,
  action: string,
  target: string,
  statements: readonly Change[],
  services: Administration,
): Promise<void> {
  const changes = await storeAudited(context, action, target, statements, services);
  checkChanged(changes, action.replace(/\..*/, ""));
}

/** Makes Problem 404 for a kind of record, such as "user". */
export function notFound(what: string): Problem {
  return new Problem(404, "not_found", `There is no such ${what}.`);
}

/** Makes a response with a new record. Its Location is the request's `path` and the record's id. */
export function locatedResponse(status: 201 | 202, path: string, id: string, record: object) {
  return jsonResponse(status, record, { Location: `${path}/${id}`, ...NO_STORE });
}
