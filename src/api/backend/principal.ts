import { jsonResponse } from "../../http/respond.ts";
import { PrincipalChange, PrincipalRecord, toPrincipalRecord } from "../../oauth/issuer.ts";
import { afterWrite } from "../../store/after_write.ts";
import {
  deletePrincipal,
  findPrincipal,
  PRINCIPAL_LIST,
  updatePrincipal,
} from "../../store/issuers.ts";
import { endSubscriptions } from "../../store/subscription_end.ts";
import { type Administration, found, removeAudited, storeAudited } from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";

const PATH = "/backend/principal";
const ITEM = `${PATH}/:id` as const;
const ID = PrincipalRecord.members.id;

/** /backend/principal: whom the tokens of other issuers speak for. */
export function principalOperations(services: Administration): Operation[] {
  const { database, now } = services;
  const find = async (id: string) => found(await findPrincipal(database, id), "principal");

  return [
    backend("GET", PATH, "listPrincipals", "List whom tokens of other issuers speak for",
      listing(database, PRINCIPAL_LIST, ID, PrincipalRecord, toPrincipalRecord)),
    backend("GET", ITEM, "getPrincipal", "One principal", {
      responses: { 200: PrincipalRecord },
      handle: async ({ params: { id } }) => jsonResponse(200, toPrincipalRecord(await find(id))),
    }),
    backend("PATCH", ITEM, "changePrincipal", "Disable a principal, or let it in again", {
      body: PrincipalChange,
      responses: { 200: PrincipalRecord },
      async handle({ params: { id }, body: { status }, ...context }) {
        await find(id);
        const end = { reason: "principal disabled" };
        await storeAudited(context, [
          updatePrincipal(id, status),
          ...status === "disabled" ? endSubscriptions({ user: id }, end, now()) : [],
        ], { action: "principal.change", target: id }, services);
        return jsonResponse(200, toPrincipalRecord(await afterWrite(find(id))));
      },
    }),
    backend("DELETE", ITEM, "deletePrincipal", "Forget a principal until its next token", {
      async handle({ params, ...context }) {
        const { id } = await find(params.id);
        const end = { reason: "principal deleted", deletes: true };
        await removeAudited(context, "principal", id, [
          deletePrincipal(id),
          ...endSubscriptions({ user: id }, end, now()),
        ], services);
      },
    }),
  ];
}
