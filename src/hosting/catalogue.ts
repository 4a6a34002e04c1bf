import type { DeclaredEvent } from "../event/event.ts";
import { OWN_SCOPES, type ScopeWords } from "../oauth/scope.ts";
import type { LoadedScope } from "./check.ts";
import type { LoadedEndpoint } from "./check_endpoint.ts";

/**
 * Returns every event that the endpoints declare, once and sorted by name. The first description,
 * schema and example of an event count. Loading has already checked that the scopes agree.
 */
export function catalogue(
  endpoints: readonly { readonly emits: readonly DeclaredEvent[] }[],
): DeclaredEvent[] {
  const byName = new Map<string, DeclaredEvent>();
  for (const event of endpoints.flatMap(({ emits }) => emits)) {
    const first = byName.get(event.name) ?? event;
    const { data = event.data, example = event.example } = first;
    byName.set(event.name, { ...first, data, example });
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns every scope that endpoints or their events need, once. */
export function neededScopes(
  endpoints: readonly Pick<LoadedEndpoint, "scopes" | "emits">[],
): string[] {
  const all = endpoints.flatMap(({ scopes = [], emits }) =>
    [...scopes, ...emits.flatMap(({ scope }) => scope)]);
  return [...new Set(all)];
}

/** Returns the descriptions of scopes by name, with the service's own scopes. */
export function scopeWords(scopes: readonly LoadedScope[]): ReadonlyMap<string, ScopeWords> {
  return new Map([...OWN_SCOPES, ...scopes.map((scope) => [scope.name, scope] as const)]);
}
