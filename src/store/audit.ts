import type { HttpRequest } from "../base/http_message.ts";
import { idOf, isId, newId } from "../base/id.ts";
import { described, type Infer, named, nullable, record, TEXT } from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { APP, type Caller, LOGIN_APP } from "../oauth/principal.ts";
import { limitTo } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { asItem, is, madeBetween, startsWith, WANTED, where } from "./list.ts";

/** Who did what to whom; never a secret. */
export const AuditRecord = named("AuditEntry", record({
  id: idOf("t"),
  time: TIME,
  actor: described("The id of a user, an app or a principal; or cli, or anonymous.", TEXT),
  action: described("Such as app.create.", TEXT),
  target: described("The id of what was acted on; unknown if nothing has the name.", TEXT),
  address: nullable(TEXT),
  app: described("The app that acted for the actor, if any.", nullable(APP)),
}));

/** An audit entry; its id has its time. */
export type AuditEntry = Omit<Infer<typeof AuditRecord>, "time">;

/** An audit entry as it is first stored. */
export type NewAuditEntry = Omit<AuditEntry, "id" | "app"> & Partial<Pick<AuditEntry, "app">>;

/** Who acts by a token, through which app, and from where. */
export function actorOf(
  { sub, clientId }: Pick<Caller, "sub" | "clientId">,
  { address }: Pick<HttpRequest, "address">,
): Pick<AuditEntry, "actor" | "app" | "address"> {
  const isOwn = clientId === LOGIN_APP || clientId === sub || isId("x", sub);
  return { actor: sub, app: isOwn ? null : clientId, address: address || null };
}

/** The actor of what the command line does. */
export const CLI_ACTOR = "cli";

/** The actor if nobody has authenticated. */
export const ANONYMOUS = "anonymous";

/** Stands for a user or an app that does not exist: the name that was sent is not stored. */
export const UNKNOWN = "unknown";

/** Actions that anyone can cause: the number of their entries is bounded (failure_audit.ts). */
export const FAILED_LOGIN = "user.login_failed";
export const FAILED_AUTHENTICATION = "app.authenticate_failed";
export const FAILED_USER_CODE = "user.code_failed";
export const FAILURES = [FAILED_LOGIN, FAILED_AUTHENTICATION, FAILED_USER_CODE];

/** A user allowed an app something. Any user can cause many entries, so the oldest are removed. */
export const GRANT_ALLOWED = "grant.allow";
/** A user denied an app something; the oldest entries are removed too. */
export const GRANT_DENIED = "grant.deny";

/**
 * Records an action, if `when` holds at this point of the batch. Put it into the batch of what it
 * records, so that neither is stored without the other.
 */
export function insertAudit(entry: NewAuditEntry, nowMs: number, when: Sql = sql`TRUE`): Sql {
  const { actor, action, target, address, app = null } = entry;
  return sql`INSERT INTO audit (id, actor, action, target, address, app)
    SELECT ${newId("t", nowMs)}, ${actor}, ${action}, ${target}, ${address}, ${app} WHERE ${when}`;
}

/** Records an action if the grant is valid at this point of the batch. */
export function insertAuditOfGrant(grantId: string, entry: NewAuditEntry, nowMs: number): Sql {
  const isValid = sql`EXISTS (SELECT 1 FROM grants WHERE id = ${grantId} AND revokedAtMs IS NULL)`;
  return insertAudit(entry, nowMs, isValid);
}

/**
 * A statement, and a condition that holds right before it if it changes a row: `changes()` cannot
 * tell if an engine runs statements in between. Without `when` it is always recorded.
 */
export type Change = Sql & { readonly when?: Sql };

/** Changes rows; recorded if it changes any. */
export function updateWhere(table: Sql, set: Sql, where: Sql): Required<Change> {
  const when = sql`EXISTS (SELECT 1 FROM ${table} WHERE ${where})`;
  return { ...sql`UPDATE ${table} SET ${set} WHERE ${where}`, when };
}

/** Removes rows; recorded if it removes any. */
export function deleteWhere(table: Sql, where: Sql): Required<Change> {
  const when = sql`EXISTS (SELECT 1 FROM ${table} WHERE ${where})`;
  return { ...sql`DELETE FROM ${table} WHERE ${where}`, when };
}

/** Holds for an action; a text that ends in a dot stands for all actions that begin so. */
const isAction = (action: string): Sql =>
  action.endsWith(".") ? startsWith(sql`action`, action) : sql`action = ${action}`;

export const AUDIT_LIST = {
  table: sql`audit`,
  columns: sql`id, actor, action, target, address, app`,
  filters: {
    target: is(sql`target`, described("The id of what was acted on.", WANTED)),
    actor: is(sql`actor`, described("The id of who did it.", WANTED)),
    address: is(sql`address`, described("The client's address.", WANTED)),
    action: where(described("The action; with a final dot, as in app., all that begin so.", WANTED),
      isAction),
    not: where(described("Actions to leave out, in the form of `action`.", WANTED), (action) =>
      sql`(NOT ${isAction(action)})`),
    ...madeBetween("t", "Done"),
  },
  indexes: { target: [], actor: [], address: [], action: [] },
  toItem: asItem<AuditEntry>(),
} as const;

/** Removes the oldest entries of an action past the newest `keep`, at most `limit` of them. */
export function trimAudit(action: string, keep: number, limit: number): Sql {
  return sql`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE action = ${action} AND id <=
      (SELECT id FROM audit WHERE action = ${action} ORDER BY id DESC LIMIT 1 OFFSET ${keep})
    ORDER BY id ${limitTo(limit)})`;
}
