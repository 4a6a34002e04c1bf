import type { DeclaredEvent } from "../event/event.ts";
import { OWN_SCOPES, type ScopeWords } from "../oauth/scope.ts";
import type { LoadedScope } from "./check.ts";
import type { LoadedEndpoint } from "./check_endpoint.ts";

/**
 * Returns every event that the endpoints declare, once and by name. Of several descriptions,
 * schemas and examples the first counts; that the scopes agree was checked when the endpoints were
 * loaded.
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

/** Returns every scope that endpoints need, or their events, once. */
export function neededScopes(
  endpoints: readonly Pick<LoadedEndpoint, "scopes" | "emits">[],
): string[] {
  const all = endpoints.flatMap(({ scopes = [], emits }) =>
    [...scopes, ...emits.flatMap(({ scope }) => scope)]);
  return [...new Set(all)];
}

/** Returns what is known of scopes in words, the service's own included. */
export function scopeWords(scopes: readonly LoadedScope[]): ReadonlyMap<string, ScopeWords> {
  return new Map([...OWN_SCOPES, ...scopes.map((scope) => [scope.name, scope] as const)]);
}
