import { Problem } from "../../base/problem.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { insertAudit } from "../../store/audit.ts";
import { ConflictError, type Database, type Statement } from "../../store/database.ts";
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
  readonly now: () => number;
}

/** What every backend route has: scope `backend`, and never CORS (contract 2). */
export const BACKEND_ROUTE = { access: [BACKEND_SCOPE], cors: false } as const;

/** What a change is audited as. */
export interface AuditedAction {
  readonly action: string;
  readonly target: string;
}

/**
 * Stores a change together with its audit entry, then takes in what it may have revoked, so that it
 * bites on the next request. Answers with the rows changed; throws Problem 409 with `conflict` as
 * its detail where a constraint is broken.
 */
export async function storeAudited(
  { caller, request }: ProtectedContext,
  statements: readonly Statement[],
  audited: AuditedAction,
  options: BackendOptions,
  conflict = "It conflicts with what is there.",
): Promise<number[]> {
  const { database, revocations, now } = options;
  const entry = { actor: caller.sub, ...audited, address: request.address || null };
  try {
    const changes = await database.write([...statements, insertAudit(entry, now())]);
    await revocations.refresh();
    return changes;
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
    throw new Problem(409, "conflict", conflict, { cause: error });
  }
}

/** What a look-up found; throws Problem 404 where it found nothing. */
export function found<Item>(item: Item | undefined, what: string): Item {
  if (item === undefined) throw new Problem(404, "not_found", `There is no such ${what}.`);
  return item;
}
