import { CONSUMER_SCOPE, LOGIN_APP } from "../oauth/principal.ts";
import { type Database } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";

/** The number of the last end of many subscriptions; those made after it do not fall under it. */
export const LAST_ENDING = "(SELECT ifnull(max(seq), 0) FROM subscription_endings)";

/** Holds where a JSON array of scopes has this one; no scope has a character that JSON escapes. */
export const hasScope = (scopes: string, scope: string) =>
  `instr(${scopes}, '"' || ${scope} || '"') > 0`;

/**
 * Holds where the ending `x` concerns the subscription `s`. A scope counts as granted that the
 * token had, or the grant behind it; one that has ended already falls under every ending.
 */
export const ENDS = `x.owner IN (s.principal, s.app) AND x.seq > s.grantedAfter
  AND (x.own OR s.app <> '${LOGIN_APP}')
  AND (x.scopes IS NULL OR s.granted = '[]' OR (s.granted IS NOT NULL AND EXISTS (
    SELECT 1 FROM json_each(x.scopes) lost WHERE ${hasScope("s.granted", "lost.value")}
      OR EXISTS (SELECT 1 FROM grants g
        WHERE g.id = s.grantId AND ${hasScope("g.scopes", "lost.value")}))))`;

/**
 * Holds where a subscription `s` may receive what needs the scopes `needed` (SQL of a JSON array): its user and app are active, nothing has ended it, and each of the
 * scopes, and `consumer`, is granted to it and is still its app's and its user's.
 */
export function mayReceive(needed: string): string {
  return `${holds(`'${CONSUMER_SCOPE}'`)}
    AND NOT EXISTS (SELECT 1 FROM subscription_endings x WHERE ${ENDS})
    AND NOT EXISTS (SELECT 1 FROM json_each(${needed}) scope
      WHERE NOT (${holds("scope.value")}))`;
}

function holds(scope: string): string {
  return `(s.granted IS NULL OR ${hasScope("s.granted", scope)})
    AND (s.principal = s.app OR EXISTS (SELECT 1 FROM users u
      WHERE u.id = s.principal AND u.status = 'active' AND ${hasScope("u.scopes", scope)}))
    AND (s.app = '${LOGIN_APP}' OR EXISTS (SELECT 1 FROM apps a
      WHERE a.id = s.app AND a.status = 'active' AND ${hasScope("a.scopes", scope)}))`;
}

/** The scopes, a JSON array, that the serving processes declare for an event's name. */
export const declaredScope = (name: string) =>
  `ifnull((SELECT scopes FROM event_scopes WHERE name = ${name}), '[]')`;

/** What a subscriber to the event `e` needs: as declared at its dispatch, and as it is now. */
export const NEEDED_BY_EVENT = `iif(e.scopes = ${declaredScope("e.name")}, e.scopes,
  (SELECT json_group_array(value) FROM (SELECT value FROM json_each(e.scopes)
    UNION SELECT value FROM json_each(${declaredScope("e.name")}))))`;

/**
 * Makes known what subscribers to events must be allowed, wherever these are dispatched from. What
 * is declared later takes the place of it; a name that is declared no more keeps its scopes.
 */
export function declareEvents(
  events: readonly { readonly name: string; readonly scope: readonly string[] }[],
): Sql {
  return sql`INSERT INTO event_scopes (name, scopes)
     SELECT value ->> 'name', value -> 'scope' FROM json_each(${JSON.stringify(events)}) WHERE TRUE
     ON CONFLICT (name) DO UPDATE SET scopes = excluded.scopes WHERE scopes <> excluded.scopes`;
}

/** What a subscriber to an event of this name must be allowed; none for an undeclared one. */
export async function findEventScopes(
  database: Database,
  name: string,
): Promise<readonly string[]> {
  const rows = await database.query<{ scopes: string }>(sql`SELECT scopes FROM event_scopes WHERE name = ${name}`);
  return JSON.parse(rows[0]?.scopes ?? "[]") as string[];
}
