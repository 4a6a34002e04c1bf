import { DeclaredEventRecord } from "../../event/event.ts";
import { covers } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { consumer, type Operation } from "../operation.ts";
import { listingOf } from "../pagination.ts";
import { grantedScopes } from "../subscription.ts";

/** GET /consumer/event: the declared events that the caller may subscribe to, by name. */
export function eventCatalogueOperation(
  { database, events }: Pick<Services, "database" | "events">,
): Operation {
  return consumer("GET", "/consumer/event", "listDeclaredEvents",
    "List the declared events that the caller may subscribe to",
    listingOf(DeclaredEventRecord, ({ name }) => name, "up", async ({ caller }) => {
      const granted = await grantedScopes(database, caller);
      const allowed = events.filter(({ scope }) => scope.every((each) => covers(granted, each)));
      return allowed.map(({ data, scope, ...event }) => ({
        ...event,
        scope: scope.join(" ") || undefined,
        schema: data?.schema,
      }));
    }));
}
