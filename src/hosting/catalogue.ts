import type { DeclaredEvent } from "../event/event.ts";
import { OWN_SCOPES, type ScopeWords } from "../oauth/scope.ts";
import type { LoadedEndpoint, LoadedScope, Origin } from "./check.ts";

/**
 * Returns every event that the endpoints declare, once and by name. Of several descriptions
 * the first counts; that the scopes agree was checked when the endpoints were loaded.
 */
export function catalogue(endpoints: readonly Pick<LoadedEndpoint, "emits">[]): DeclaredEvent[] {
  const events = new Map<string, DeclaredEvent>();
  for (const event of endpoints.flatMap(({ emits }) => emits)) {
    if (!events.has(event.name)) events.set(event.name, event);
  }
  return [...events.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns what is known of scopes in words, the service's own included. */
export function scopeWords(scopes: readonly LoadedScope[]): ReadonlyMap<string, ScopeWords> {
  return new Map([...OWN_SCOPES, ...scopes.map((scope) => [scope.name, scope] as const)]);
}

/**
 * Finds events that an endpoint declares with other scopes than an earlier one: which of them
 * would count is then up to the order of files.
 */
export function findScopeConflicts(
  endpoints: readonly LoadedEndpoint[],
): (Origin & { readonly reason: string })[] {
  const first = new Map<string, Origin & { readonly scopes: string }>();
  return endpoints.flatMap(({ file, exportName, emits }) =>
    emits.flatMap(({ name, scope }) => {
      const scopes = scope.toSorted().join(" ");
      const known = first.get(name) ?? { file, exportName, scopes };
      first.set(name, known);
      if (known.scopes === scopes) return [];
      const reason = `emits["${name}"] has another scope than in ${known.exportName} of ` +
        known.file;
      return [{ file, exportName, reason }];
    })
  );
}
