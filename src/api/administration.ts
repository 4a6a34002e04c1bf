import type { HttpRequest } from "../base/http_message.ts";
import { conflict, Problem } from "../base/problem.ts";
import { ConflictError } from "../database/database.ts";
import { jsonResponse, NO_STORE } from "../http/respond.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { actorOf, type Change, insertAudit } from "../store/audit.ts";

/** What the administration of every resource works with. */
export type Administration =
  Pick<Services, "database" | "revocations" | "config" | "wake" | "now">;

/** Who changes something, and by which request. */
export interface Actor {
  readonly caller: Pick<Caller, "sub" | "clientId">;
  readonly request: Pick<HttpRequest, "address">;
}

/**
 * Stores a change together with its audit entry, which is left out where the first statement, the
 * change itself, will change no row. What it revokes takes effect on the next request, and what it
 * dispatches is distributed at once. Returns the rows that each statement changed; throws Problem
 * 409 with `refusal` as its detail where a constraint is broken.
 */
export async function storeAudited(
  { caller, request }: Actor,
  action: string,
  target: string,
  statements: readonly Change[],
  { database, revocations, wake, now }: Administration,
  refusal = "It conflicts with what is there.",
): Promise<number[]> {
  const entry = { ...actorOf(caller, request), action, target };
  const audit = insertAudit(entry, now(), statements[0]?.when);
  const changes = await database.write([audit, ...statements]).catch(refuseConflict(refusal));
  await revocations.refresh();
  wake();
  return changes.slice(1);
}

/** Turns the error of a write that breaks a constraint into Problem 409 with this detail. */
export function refuseConflict(detail: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ConflictError)) throw error;
    throw conflict(detail, { cause: error });
  };
}

const CHANGE_TRIES = 5;

/**
 * Runs `change`, which reads a record and stores it changed, again where another request has
 * changed the record in between; throws Problem 409 after five times.
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

/** What a look-up found; throws Problem 404 where it found nothing. */
export function found<Item>(item: Item | undefined, what: string): Item {
  if (item === undefined) throw notFound(what);
  return item;
}

/** Throws Problem 404 where a change's first statement found nothing: it has just been removed. */
export function checkChanged([first]: readonly number[], what: string): void {
  if (first === 0) throw notFound(what);
}

/**
 * Stores a change of what is there, or its removal, as `storeAudited` does; throws Problem 404 as
 * `checkChanged` does. `action` begins with what that is: "app.change".
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

/** Problem 404 for a thing of this kind, as in "user". */
export function notFound(what: string): Problem {
  return new Problem(404, "not_found", `There is no such ${what}.`);
}

/** A response that says where the new record is: by its id below `path`, a request's. */
export function locatedResponse(status: 201 | 202, path: string, id: string, record: object) {
  return jsonResponse(status, record, { Location: `${path}/${id}`, ...NO_STORE });
}
