import { Problem } from "../../base/problem.ts";
import { named, object, optional } from "../../base/shape.ts";
import { AppChange, AppRecord, AppSecret, NewAppSecret, toAppRecord } from "../../oauth/app.ts";
import type { Caller } from "../../oauth/principal.ts";
import { APP_LIST, findApp } from "../../store/apps.ts";
import { listPart } from "../../store/list.ts";
import { type Administration, found } from "../administration.ts";
import { storeAppChange, storeAppSecret } from "../backend/app.ts";
import { consumer, type Operation } from "../operation.ts";
import { pageOf, pagination, toPageRecord, toPagination } from "../pagination.ts";
import { loggedInUser } from "./account_acts.ts";

const PATH = "/consumer/app";
const ITEM = `${PATH}/:client_id` as const;

const { name, url, redirect_uris } = AppChange.members;
const OwnAppChange = named("OwnAppChange", object({ name, url, redirect_uris }));

/** Apps for their owners, who decide neither what they may do nor whom they need not ask. */
export function ownAppOperations(services: Administration): Operation[] {
  const { database } = services;

  async function find(id: string, caller: Caller) {
    const user = loggedInUser(caller);
    const app = await findApp(database, id);
    return found(app?.owner === user ? app : undefined, "app");
  }

  return [
    consumer("GET", PATH, "listOwnApps", "List the apps that the caller owns", {
      query: pagination(AppRecord.members.client_id),
      returns: pageOf(AppRecord),
      async handle({ query, caller }) {
        const owned = { owner: loggedInUser(caller) };
        const page = await listPart(database, APP_LIST, owned, toPagination(query));
        return toPageRecord(page, toAppRecord);
      },
    }),
    consumer("GET", ITEM, "getOwnApp", "One of the caller's apps", {
      returns: AppRecord,
      handle: async ({ params, caller }) => toAppRecord(await find(params.client_id, caller)),
    }),
    consumer("PATCH", ITEM, "changeOwnApp", "Change the name or the addresses of one's app", {
      body: OwnAppChange,
      returns: AppRecord,
      refuses: [409],
      handle: ({ params, body, ...context }) =>
        storeAppChange(context, async () => {
          const app = await find(params.client_id, context.caller);
          const isMoved = body.url !== undefined || body.redirect_uris !== undefined;
          if (!app.trusted || !isMoved) return app;
          // No user is asked for it: whoever has its addresses has everybody's codes.
          const detail = "The app is trusted; only an operator changes its addresses.";
          throw new Problem(403, "trusted_app", detail);
        }, body, services),
    }),
    consumer("POST", `${ITEM}/secret`, "replaceOwnAppSecret",
      "Replace the secret of one's app; the old one is good for a day, or no more at all", {
      body: optional(NewAppSecret),
      returns: AppSecret,
      refuses: [409],
      handle: async ({ params, body, ...context }) =>
        storeAppSecret(context, await find(params.client_id, context.caller), body, services),
    }),
  ];
}
