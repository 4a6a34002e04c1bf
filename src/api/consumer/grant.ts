import { Problem } from "../../base/problem.ts";
import { type Caller, CONSUMER_SCOPE, LOGIN_APP } from "../../oauth/principal.ts";
import { actorOf, insertAudit } from "../../store/audit.ts";
import { type ActingApp, listActingApps, withdrawConsent } from "../../store/consents.ts";
import type { Database } from "../../database/database.ts";
import type { Revocations } from "../../store/revocations.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";

/** What the consumer's grants work with. */
export interface ConsumerGrantOptions {
  readonly database: Database;
  readonly revocations: Revocations;
  readonly accessTokenTtlMs: number;
  /** Tells the distributor that there may be work. */
  readonly wake: () => void;
  readonly now: () => number;
}

/** /consumer/grant: the apps that may act for the caller, who is a user that has logged in here. */
export function consumerGrantRoutes(options: ConsumerGrantOptions): ProtectedRoute[] {
  const { database, revocations, now } = options;
  const collection = { access: [CONSUMER_SCOPE], cors: true, path: "/consumer/grant" } as const;

  return [
    {
      ...collection,
      method: "GET",
      summary: "List the apps that may act for the caller",
      async handle({ request, caller }) {
        checkLoggedIn(caller);
        const { limit, before } = readPagination(request);
        const apps = await listActingApps(database, caller.sub, now());
        const rest = apps.filter(({ id }) => id < before);
        const items = rest.slice(0, limit);
        const next = rest.length > limit ? items.at(-1)?.id : undefined;
        return listResponse({ items, next }, toRecord);
      },
    },
    {
      ...collection,
      path: `${collection.path}/:id`,
      method: "DELETE",
      summary: "Withdraw from an app what it may do for the caller",
      async handle({ params, request, caller }) {
        checkLoggedIn(caller);
        const user = caller.sub;
        const [acting] = await listActingApps(database, user, now(), params["id"] ?? "");
        const app = acting?.id;
        if (app === undefined) throw new Problem(404, "not_found", "There is no such grant.");
        const entry = { ...actorOf(caller, request), action: "grant.withdraw", target: app };
        await database.write([
          ...withdrawConsent(user, app, "grant withdrawn", now(), options.accessTokenTtlMs),
          insertAudit(entry, now()),
        ]);
        await revocations.refresh();
        options.wake(); // for what it dispatched of the subscriptions
        return emptyResponse(204);
      },
    },
  ];
}

/** An app must not learn of others, nor end them. */
function checkLoggedIn({ clientId }: Caller): void {
  if (clientId === LOGIN_APP) return;
  throw new Problem(403, "login_only", "Only a token of the login endpoint opens this.");
}

function toRecord({ id, name, url, scopes }: ActingApp): Record<string, unknown> {
  return { id, name, url, scopes };
}
