import { Problem } from "../../base/problem.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { actorOf, insertAudit, insertAuditOfChange } from "../../store/audit.ts";
import { ConflictError, type Database } from "../../database/database.ts";
import type { Sql } from "../../database/sql.ts";
import type { Revocations } from "../../store/revocations.ts";
import type { ProtectedContext } from "../route.ts";

/** What the administration of every resource works with. */
export interface BackendOptions {
  readonly database: Database;
  readonly revocations: Revocations;
  readonly maxBodyBytes: number;
  readonly accessTokenTtlMs: number;
  /** Below the base URL: where Location points. */
  readonly basePath: string;
  /** Tells the distributor that there may be work. */
  readonly wake: () => void;
  readonly now: () => number;
}

/** What every backend route has: scope `backend`, and never CORS. */
export const BACKEND_ROUTE = { access: [BACKEND_SCOPE], cors: false } as const;

/** What a change is audited as. */
export interface AuditedAction {
  readonly action: string;
  readonly target: string;
  /** Recorded even where nothing is changed, since what it ends may have ended before. */
  readonly always?: boolean;
}

/**
 * Stores a change together with its audit entry, which is left out where the first statement, the
 * change itself, changes nothing. Then takes in what it may have revoked, so that it bites on the
 * next request, and wakes the distributor for what it may have dispatched. Answers with the rows
 * changed; throws Problem 409 with `conflict` as its detail where a constraint is broken.
 */
export async function storeAudited(
  { caller, request }: ProtectedContext,
  statements: readonly Sql[],
  { always = false, ...action }: AuditedAction,
  options: BackendOptions,
  conflict = "It conflicts with what is there.",
): Promise<number[]> {
  const { database, revocations, wake, now } = options;
  const entry = { ...actorOf(caller, request), ...action };
  const audit = always ? insertAudit(entry, now()) : insertAuditOfChange(entry, now());
  try {
    const changes = await database.write(statements.toSpliced(1, 0, audit));
    await revocations.refresh();
    wake();
    return changes.toSpliced(1, 1);
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    throw new Problem(409, "conflict", conflict, { cause: error });
  }
}

const CHANGE_TRIES = 5;

/**
 * Reads a record, and stores what becomes of it, anew where it has been changed between the two;
 * throws Problem 409 where it goes on being changed.
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

function notFound(what: string): Problem {
  return new Problem(404, "not_found", `There is no such ${what}.`);
}
