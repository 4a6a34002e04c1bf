import { newId } from "../../base/id.ts";
import type { PasswordHasher } from "../../base/password.ts";
import { parseNewUser, parseUserChange, type User } from "../../oauth/user.ts";
import { revokeGrantsWithScopes } from "../../store/grant_end.ts";
import {
  revokeTokensOfUser,
  deleteUser,
  findUser,
  insertUser,
  listUsers,
  updateUser,
} from "../../store/users.ts";
import { readJson } from "../../http/body.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";
import {
  BACKEND_ROUTE,
  type BackendOptions,
  changeFresh,
  checkChanged,
  found,
  storeAudited,
} from "./backend_route.ts";

/** /backend/user: those who log in. */
export function userRoutes(options: BackendOptions & { hasher: PasswordHasher }): ProtectedRoute[] {
  const { database, hasher, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/user" };
  const item = { ...BACKEND_ROUTE, path: "/backend/user/:id" };
  const taken = "The user name is taken.";

  return [
    {
      ...collection,
      method: "POST",
      summary: "Add a user",
      async handle(context) {
        const body = await readJson(context.request, options.maxBodyBytes);
        const { username, password, scopes } = parseNewUser(body);
        const phc = await hasher.hash(password);
        const createdAtMs = now();
        const id = newId("u", createdAtMs);
        const insert = insertUser({ id, username, phc, scopes, createdAtMs });
        await storeAudited(context, [insert], { action: "user.create", target: id }, options, taken);
        const user = { id, username, scopes, status: "active", createdAtMs, notBeforeMs: 0 } as const;
        const location = `${options.basePath}${collection.path}/${id}`;
        return jsonResponse(201, toRecord(user), { Location: location, ...NO_STORE });
      },
    },
    {
      ...collection,
      method: "GET",
      summary: "List users",
      async handle({ request }) {
        return listResponse(await listUsers(database, readPagination(request)), toRecord);
      },
    },
    {
      ...item,
      method: "GET",
      summary: "One user",
      async handle({ params }) {
        const user = found(await findUser(database, params["id"] ?? ""), "user");
        return jsonResponse(200, toRecord(user), NO_STORE);
      },
    },
    {
      ...item,
      method: "PATCH",
      summary: "Change a user's password, scopes or status",
      async handle(context) {
        const id = context.params["id"] ?? "";
        found(await findUser(database, id), "user"); // before a hash is made
        const body = await readJson(context.request, options.maxBodyBytes);
        const { password, scopes, status } = parseUserChange(body);
        const phc = password === undefined ? undefined : await hasher.hash(password);
        const isDisabled = status === "disabled";
        await changeFresh(async () => {
          const user = found(await findUser(database, id), "user");
          const lost = user.scopes.filter((scope) => scopes?.includes(scope) === false);
          const end = isDisabled ? { reason: "user disabled" } : undefined;
          await storeAudited(context, [
            updateUser(id, { phc, scopes, status }, user.scopes),
            ...isDisabled || phc ? revokeTokensOfUser(id, now(), options.accessTokenTtlMs, end) : [],
            ...revokeGrantsWithScopes({ user: id }, lost, now()),
          ], { action: "user.change", target: id }, options);
        });
        return jsonResponse(200, toRecord(found(await findUser(database, id), "user")), NO_STORE);
      },
    },
    {
      ...item,
      method: "DELETE",
      summary: "Remove a user",
      async handle(context) {
        const user = found(await findUser(database, context.params["id"] ?? ""), "user");
        const end = { reason: "user deleted", deletes: true };
        const changes = await storeAudited(context, [
          ...revokeTokensOfUser(user.id, now(), options.accessTokenTtlMs, end),
          deleteUser(user.id),
        ], { action: "user.delete", target: user.id }, options);
        checkChanged(changes, "user");
        return emptyResponse(204);
      },
    },
  ];
}

/** A user as the backend shows it. */
export function toRecord(user: User): Record<string, unknown> {
  const { id, username, scopes, status, createdAtMs } = user;
  return { id, username, scopes, status, created_at: new Date(createdAtMs).toISOString() };
}
