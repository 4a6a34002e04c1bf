import { withChange } from "../../base/shape.ts";
import {
  type Principal,
  PrincipalChange,
  PrincipalRecord,
  toPrincipalRecord,
} from "../../oauth/issuer.ts";
import { ISSUERS, PRINCIPALS } from "../../store/issuers.ts";
import { endSubscriptions } from "../../store/subscription_end.ts";
import {
  type Actor,
  type Administration,
  changeAudited,
  changeFresh,
  found,
} from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";
import { checkGivesBackend } from "../recent_login.ts";

const PATH = "/backend/principal";
const ITEM = `${PATH}/:id` as const;

/** /backend/principal: the subjects of other issuers' tokens. */
export function principalOperations(services: Administration): Operation[] {
  const { database, now } = services;
  const find = async (id: string) => found(await PRINCIPALS.find(database, id), "principal");

  /** Throws as `checkGivesBackend` does, if `status` gives the principal scope `backend`. */
  async function checkMayEnable(
    { caller }: Actor,
    { issuer, status: before }: Principal,
    status: Principal["status"],
  ): Promise<void> {
    const { scopes } = found(await ISSUERS.find(database, issuer), "issuer");
    await checkGivesBackend(caller, { scopes, status }, { scopes, status: before }, services);
  }

  return [
    backend("GET", PATH, "listPrincipals", "List the principals of other issuers",
      listing(database, PRINCIPALS, PrincipalRecord, toPrincipalRecord)),
    backend("GET", ITEM, "getPrincipal", "One principal", {
      returns: PrincipalRecord,
      handle: async ({ params: { id } }) => toPrincipalRecord(await find(id)),
    }),
    backend("PATCH", ITEM, "changePrincipal", "Disable a principal, or enable it again", {
      body: PrincipalChange,
      returns: PrincipalRecord,
      refuses: [409],
      handle: ({ params: { id }, body, ...context }) => changeFresh(async () => {
        const principal = await find(id);
        const changed = withChange(principal, body);
        await checkMayEnable(context, principal, changed.status);
        const end = { reason: "principal disabled" };
        await changeAudited(context, "principal.change", id, [
          PRINCIPALS.update(principal, changed),
          ...changed.status === "disabled" ? endSubscriptions({ user: id }, end, now()) : [],
        ], services);
        return toPrincipalRecord(changed);
      }),
    }),
    backend("DELETE", ITEM, "deletePrincipal", "Remove a principal; its next token adds it again", {
      async handle({ params, ...context }) {
        const principal = await find(params.id);
        const { id } = principal;
        await checkMayEnable(context, principal, "active"); // its next token makes it again
        const end = { reason: "principal deleted", deletes: true };
        await changeAudited(context, "principal.delete", id, [
          PRINCIPALS.remove(id),
          ...endSubscriptions({ user: id }, end, now()),
        ], services);
      },
    }),
  ];
}
