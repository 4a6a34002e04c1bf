import { idOf } from "../../base/id.ts";
import { manyOf, named, record, TEXT, URI } from "../../base/shape.ts";
import { listActingApps, withdrawConsent } from "../../store/consents.ts";
import { type Administration, found, storeAudited } from "../administration.ts";
import { consumer, type Operation } from "../operation.ts";
import { listResponse, pageOf, pageOfItems, pagination } from "../pagination.ts";
import { loggedInUser } from "./logged_in_user.ts";

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
