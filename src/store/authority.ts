import { CONSUMER_SCOPE, LOGIN_APP } from "../oauth/principal.ts";
import { parseScope } from "../oauth/scope.ts";
import { type Database, sql, type Statement } from "./database.ts";

/** The number of the last end of many subscriptions; those made after it do not fall under it. */
export const LAST_ENDING = "(SELECT ifnull(max(seq), 0) FROM subscription_endings)";

const has = (scopes: string, scope: string) =>
  `instr(' ' || ${scopes} || ' ', ' ' || ${scope} || ' ')`;

/**
 * Holds where the ending `x` concerns the subscription `s`. A scope counts as granted that the
 * token had, or the grant behind it; one that has ended already falls under every ending.
 */
export const ENDS = `x.owner IN (s.principal, s.app) AND x.seq > s.granted_after
  AND (x.own OR s.app <> '${LOGIN_APP}')
  AND (x.scopes IS NULL OR s.granted = '' OR (s.granted IS NOT NULL AND EXISTS (
    SELECT 1 FROM json_each(x.scopes) lost WHERE ${has("s.granted", "lost.value")}
      OR EXISTS (SELECT 1 FROM grants g
        WHERE g.id = s.grant_id AND ${has("g.scope", "lost.value")}))))`;

/**
 * Holds where a subscription `s` may receive what needs the scopes `needed` (SQL of names separated
 * by spaces, '' for none): its user and app are active, nothing has ended it, and each of the
 * scopes, and `consumer`, is granted to it and is still its app's and its user's. Mostly nothing at
 * all is ending, which SQLite finds out once for all rows.
 */
export function mayReceive(needed: string): string {
  const words = `json_each('["' || replace(${needed}, ' ', '","') || '"]')`;
  return `${holds(`'${CONSUMER_SCOPE}'`)}
    AND (NOT EXISTS (SELECT 1 FROM subscription_endings)
      OR NOT EXISTS (SELECT 1 FROM subscription_endings x WHERE ${ENDS}))
    AND (${needed} = ''
      OR NOT EXISTS (SELECT 1 FROM ${words} word WHERE NOT (${holds("word.value")})))`;
}

function holds(scope: string): string {
  return `(s.granted IS NULL OR ${has("s.granted", scope)})
    AND (s.principal = s.app OR EXISTS (SELECT 1 FROM users u
      WHERE u.id = s.principal AND u.status = 'active' AND ${has("u.scope", scope)}))
    AND (s.app = '${LOGIN_APP}' OR EXISTS (SELECT 1 FROM apps a
      WHERE a.id = s.app AND a.status = 'active' AND ${has("a.scope", scope)}))`;
}

/** The scopes, separated by spaces, that the serving processes declare for an event's name. */
export const declaredScope = (name: string) =>
  `ifnull((SELECT scope FROM event_scopes WHERE name = ${name}), '')`;

/** What a subscriber to the event `e` needs: as declared at its dispatch, and as it is now. */
export const NEEDED_BY_EVENT = `trim(e.scope || ' ' || ${declaredScope("e.name")})`;

/**
 * Makes known what subscribers to events must be allowed, wherever these are dispatched from. What
 * is declared later takes the place of it; a name that is declared no more keeps its scopes.
 */
export function declareEvents(
  events: readonly { readonly name: string; readonly scope: readonly string[] }[],
): Statement {
  const rows = events.map(({ name, scope }) => ({ name, scope: scope.join(" ") }));
  return sql(
    `INSERT INTO event_scopes (name, scope)
     SELECT value ->> 'name', value ->> 'scope' FROM json_each(?1) WHERE TRUE
     ON CONFLICT (name) DO UPDATE SET scope = excluded.scope WHERE scope <> excluded.scope`,
    JSON.stringify(rows),
  );
}

/** What a subscriber to an event of this name must be allowed; none for an undeclared one. */
export async function findEventScopes(
  database: Database,
  name: string,
): Promise<readonly string[]> {
  const rows = await database.query<{ scope: string }>(
    "SELECT scope FROM event_scopes WHERE name = ?1",
    [name],
  );
  return parseScope(rows[0]?.scope ?? "") ?? [];
}
