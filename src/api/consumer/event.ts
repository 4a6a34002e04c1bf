import { CONSUMER_SCOPE } from "../../oauth/principal.ts";
import { formatScope } from "../../oauth/scope.ts";
import { FIRST_PAGE } from "../../database/database.ts";
import { listResponse, readPagination } from "../pagination.ts";
import type { ProtectedRoute } from "../route.ts";

/** An event that an endpoint module declares. */
export interface DeclaredEvent {
  readonly name: string;
  readonly description: string;
  /** All that are needed to subscribe to it. */
  readonly scope: readonly string[];
}

/** GET /consumer/event: the declared events that the caller may subscribe to, by name. */
export function eventCatalogueRoute(events: readonly DeclaredEvent[]): ProtectedRoute {
  return {
    method: "GET",
    path: "/consumer/event",
    access: [CONSUMER_SCOPE],
    cors: true,
    summary: "List the declared events that the caller may subscribe to",
    handle({ request, caller }) {
      const { limit, before } = readPagination(request);
      // What there is changes with a restart only, so a place in it is cursor enough.
      const start = before === FIRST_PAGE ? 0 : Number.parseInt(before, 10) || 0;
      const allowed = events.filter(({ scope }) =>
        scope.every((each) => caller.scopes.includes(each))
      );
      const end = start + limit;
      return Promise.resolve(listResponse({
        items: allowed.slice(start, end),
        next: end < allowed.length ? String(end) : undefined,
      }, toRecord));
    },
  };
}

function toRecord({ name, description, scope }: DeclaredEvent): Record<string, unknown> {
  return { name, description, ...(scope.length > 0 && { scope: formatScope(scope) }) };
}
