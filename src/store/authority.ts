import {
  BACKEND_READ_SCOPE,
  BACKEND_SCOPE,
  BUILT_IN_APPS,
  CONSUMER_SCOPE,
  LOGIN_APP,
} from "../oauth/principal.ts";
import type { DeclaredEvent } from "../event/event.ts";
import type { Database } from "../database/database.ts";
import { findValue } from "../database/rows.ts";
import { joinSql, sql, type Sql, sqlText } from "../database/sql.ts";

/** The number of the last ending of many subscriptions: it does not concern later subscriptions. */
export const LAST_ENDING = sql`(SELECT ifnull(max(seq), 0) FROM subscription_endings)`;

/** Holds if a principal of another issuer and this issuer are active. */
export function isPrincipalActive(id: Sql | string): Sql {
  return sql`EXISTS (SELECT 1 FROM principals p JOIN issuers i ON i.id = p.issuer
    WHERE p.id = ${id} AND p.status = 'active' AND i.status = 'active')`;
}

/**
 * Holds for built-in apps (logins, personal tokens, the console), which are in no table. Not by
 * `IN`: SQLite would make a table of its list each time, for as much as the rest of a write.
 */
export function isOfNoApp(app: Sql): Sql {
  return sql`(${joinSql(BUILT_IN_APPS.map((name) => sql`${app} = ${sqlText(name)}`), " OR ")})`;
}

/** Holds where a JSON array of scopes has this one; no scope has a character that JSON escapes. */
export function hasScope(scopes: Sql, scope: Sql | string): Sql {
  return sql`instr(${scopes}, '"' || ${scope} || '"') > 0`;
}

/** Holds where a JSON array of scopes allows what needs this one; {@link covers} in SQL. */
function opensScope(scopes: Sql, scope: Sql): Sql {
  return sql`(${hasScope(scopes, scope)} OR (${scope} = ${sqlText(BACKEND_READ_SCOPE)}
    AND ${hasScope(scopes, sqlText(BACKEND_SCOPE))}))`;
}

/**
 * Holds where the ending `x` concerns the subscription `s`. A scope counts as granted if the token
 * or its grant had it. Every ending concerns a subscription that has ended already.
 */
export const ENDS = sql`x.owner IN (s.principal, s.app) AND x.seq > s.grantedAfter
  AND (x.own OR s.app <> ${sqlText(LOGIN_APP)})
  AND (x.scopes IS NULL OR s.granted = '[]' OR (s.granted IS NOT NULL AND EXISTS (
    SELECT 1 FROM json_each(x.scopes) lost WHERE ${hasScope(sql`s.granted`, sql`lost.value`)}
      OR EXISTS (SELECT 1 FROM grants g
        WHERE g.id = s.grantId AND ${hasScope(sql`g.scopes`, sql`lost.value`)}))))`;

// Mostly there are no endings at all, which SQLite finds out once for all rows.
const MAY_CONSUME = sql`${holds(sqlText(CONSUMER_SCOPE))}
  AND (NOT EXISTS (SELECT 1 FROM subscription_endings)
    OR NOT EXISTS (SELECT 1 FROM subscription_endings x WHERE ${ENDS}))`;
const HOLDS_SCOPE = holds(sql`scope.value`, opensScope);

/**
 * Holds where a subscription `s` may receive what needs these scopes, a JSON array. Its user and
 * app (of a principal its issuer) are active, and nothing has ended it. It has been granted each
 * scope and `consumer`, and its app and its user still have them.
 */
export function mayReceive(needed: Sql | string): Sql {
  return sql`${MAY_CONSUME}
    AND NOT EXISTS (SELECT 1 FROM json_each(${needed}) scope WHERE NOT (${HOLDS_SCOPE}))`;
}

function holds(scope: Sql, has: (scopes: Sql, scope: Sql) => Sql = hasScope): Sql {
  return sql`(s.granted IS NULL OR ${has(sql`s.granted`, scope)})
    AND (s.principal = s.app OR EXISTS (SELECT 1 FROM users u
      WHERE u.id = s.principal AND u.status = 'active' AND ${has(sql`u.scopes`, scope)})
      OR ${isPrincipalActive(sql`s.principal`)})
    AND (${isOfNoApp(sql`s.app`)} OR EXISTS (SELECT 1 FROM apps a
      WHERE a.id = s.app AND a.status = 'active' AND ${has(sql`a.scopes`, scope)})
      OR EXISTS (SELECT 1 FROM issuers i
        WHERE i.id = s.app AND ${has(sql`i.scopes`, scope)}))`;
}

/** The scopes, a JSON array, that the serving processes declare for an event's name. */
export function declaredScopes(name: Sql | string): Sql {
  return sql`ifnull((SELECT scopes FROM event_scopes WHERE name = ${name}), '[]')`;
}

const DECLARED_NOW = declaredScopes(sql`e.name`);

/** The scopes that a subscriber to the event `e` needs: as declared at its dispatch, and now. */
export const NEEDED_BY_EVENT = sql`iif(e.scopes = ${DECLARED_NOW}, e.scopes,
  (SELECT json_group_array(value) FROM (SELECT value FROM json_each(e.scopes)
    UNION ALL SELECT value FROM json_each(${DECLARED_NOW}))))`;

/** Stores the scopes that subscribers to events need; each name keeps its last declaration. */
export function declareEvents(events: readonly Pick<DeclaredEvent, "name" | "scope">[]): Sql {
  return sql`INSERT INTO event_scopes (name, scopes)
    SELECT value ->> 'name', value -> 'scope' FROM json_each(${JSON.stringify(events)}) WHERE TRUE
    ON CONFLICT (name) DO UPDATE SET scopes = excluded.scopes WHERE scopes <> excluded.scopes`;
}

/** The scopes that a subscriber to an event of this name needs; none if it is undeclared. */
export async function findEventScopes(
  database: Database,
  name: string,
): Promise<readonly string[]> {
  const scopes = await findValue<string>(database, sql`SELECT ${declaredScopes(name)}`);
  return JSON.parse(scopes ?? "[]");
}
