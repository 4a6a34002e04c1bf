import { idOf } from "../../base/id.ts";
import { Problem } from "../../base/problem.ts";
import { manyOf, named, record, TEXT, URI } from "../../base/shape.ts";
import { type Caller, LOGIN_APP } from "../../oauth/principal.ts";
import { listActingApps, withdrawConsent } from "../../store/consents.ts";
import { type Administration, found, storeAudited } from "../administration.ts";
import { consumer, type Operation } from "../operation.ts";
import { listResponse, pageOf, pageOfItems, pagination } from "../pagination.ts";

const PATH = "/consumer/grant";

const ActingAppRecord = named(
  "ActingApp",
  record({ id: idOf("a"), name: TEXT, url: URI, scopes: manyOf(TEXT) }),
);

/** /consumer/grant: the apps that may act for the caller, who is a user that has logged in here. */
export function consumerGrantOperations(services: Administration): Operation[] {
  const { database, config: { accessTokenTtlMs }, now } = services;

  return [
    consumer("GET", PATH, "listActingApps", "List the apps that may act for the caller", {
      query: pagination(),
      responses: { 200: pageOf(ActingAppRecord) },
      async handle({ query, caller }) {
        const apps = await listActingApps(database, loggedInUser(caller), now());
        return listResponse(pageOfItems(apps, query, ({ id }) => id, "down"), (app) => app);
      },
    }),
    consumer("DELETE", `${PATH}/:id`, "withdrawGrant",
      "Withdraw from an app what it may do for the caller", {
      responses: { 204: undefined },
      async handle({ params: { id: app }, ...context }) {
        const user = loggedInUser(context.caller);
        found((await listActingApps(database, user, now(), app))[0], "grant");
        const end = { reason: "grant withdrawn" };
        const withdraw = withdrawConsent(user, app, end, now(), accessTokenTtlMs);
        const action = { action: "grant.withdraw", target: app, always: true };
        await storeAudited(context, withdraw, action, services);
        return { status: 204 };
      },
    }),
  ];
}

/**
 * The user of a login token; throws Problem 403: neither an app nor a personal token may learn of
 * others, end them, or make one that outlives it.
 */
export function loggedInUser({ sub, clientId }: Caller): string {
  if (clientId === LOGIN_APP) return sub;
  throw new Problem(403, "login_only", "Only a token of the login endpoint may do this.");
}
