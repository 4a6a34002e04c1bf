import { toFields } from "../../base/fields.ts";
import { newId } from "../../base/id.ts";
import { withChange } from "../../base/shape.ts";
import { NewUser, toUserRecord, type User, UserChange, UserRecord } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { forgetConsentsOf } from "../../store/consents.ts";
import { revokeGrantsWithScopes } from "../../store/grant_end.ts";
import {
  deleteUser,
  findUser,
  insertUser,
  revokeTokensOfUser,
  updateUser,
  USER_LIST,
} from "../../store/users.ts";
import {
  type Administration,
  changeAudited,
  changeFresh,
  found,
  locatedResponse,
  storeAudited,
} from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";
import { checkGivesBackend, checkRecentLogin } from "../recent_login.ts";

const PATH = "/backend/user";
const ITEM = `${PATH}/:id` as const;

/** /backend/user: those who log in. */
export function userOperations(services: Administration & Pick<Services, "hasher">): Operation[] {
  const { database, hasher, now, config: { accessTokenTtlMs } } = services;
  const find = async (id: string) => found(await findUser(database, id), "user");

  return [
    backend("POST", PATH, "addUser", "Add a user", {
      body: NewUser,
      responses: { 201: UserRecord },
      refuses: [409],
      async handle({ body, ...context }) {
        await checkGivesBackend(context.caller, body, undefined, services);
        const { password, username, scopes, rate = null } = body;
        const phc = await hasher.hash(password);
        const createdAtMs = now();
        const id = newId("u", createdAtMs);
        const user: User = { id, username, scopes, rate, status: "active", createdAtMs };
        const insert = insertUser({ ...user, phc });
        const taken = "The user name is taken.";
        await storeAudited(context, "user.create", id, [insert], services, taken);
        return locatedResponse(201, context.request.path, id, toUserRecord(user));
      },
    }),
    backend("GET", PATH, "listUsers", "List users",
      listing(database, USER_LIST, UserRecord, toUserRecord)),
    backend("GET", ITEM, "getUser", "One user", {
      returns: UserRecord,
      handle: async ({ params: { id } }) => toUserRecord(await find(id)),
    }),
    backend("PATCH", ITEM, "changeUser", "Change a user's password, scopes, rate or status", {
      body: UserChange,
      returns: UserRecord,
      refuses: [409],
      async handle({ params: { id }, body: { password, ...change }, ...context }) {
        await find(id); // 404 before a costly hash is made
        const phc = password === undefined ? undefined : await hasher.hash(password);
        const isDisabled = change.status === "disabled";
        const stored = await changeFresh(async () => {
          const user = await find(id);
          const changed = withChange(user, toFields(change));
          // Whoever knows the new password can do all that the user may do.
          const before = phc === undefined ? user : undefined;
          await checkGivesBackend(context.caller, changed, before, services);
          const lost = user.scopes.filter((scope) => !changed.scopes.includes(scope));
          const end = isDisabled ? { reason: "user disabled" } : undefined;
          // Both come before the `now()` of `revokeTokensOfUser`: grants made meanwhile end too.
          const forget = await forgetConsentsOf(database, { user: id }, lost);
          const revoke = await revokeGrantsWithScopes(database, { user: id }, lost, now());
          await changeAudited(context, "user.change", id, [
            updateUser(user, changed, phc),
            ...isDisabled || phc ? revokeTokensOfUser(id, now(), accessTokenTtlMs, end) : [],
            ...forget,
            ...revoke,
          ], services);
          return changed;
        });
        return toUserRecord(stored);
      },
    }),
    backend("DELETE", ITEM, "deleteUser", "Remove a user", {
      async handle({ params, ...context }) {
        const { id } = await find(params.id);
        await checkRecentLogin(context.caller, services);
        const end = { reason: "user deleted", deletes: true };
        await changeAudited(context, "user.delete", id, [
          ...revokeTokensOfUser(id, now(), accessTokenTtlMs, end),
          deleteUser(id),
        ], services);
      },
    }),
  ];
}
