import { Problem } from "../../base/problem.ts";
import { pick } from "../../base/shape.ts";
import { toTime } from "../../base/time.ts";
import { jsonResponse } from "../../http/respond.ts";
import { AccountRecord, PasswordChange } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { findUser, replacePassword, revokeTokensOfUser } from "../../store/users.ts";
import { type Administration, found, storeAudited } from "../administration.ts";
import { consumer, type Operation } from "../operation.ts";
import { loggedInUser } from "./logged_in_user.ts";

const PATH = "/consumer/account";

/** /consumer/account: the caller, who is a user that has logged in here, and the password. */
export function accountOperations(
  services: Administration & Pick<Services, "passwordLogin" | "hasher">,
): Operation[] {
  const { database, passwordLogin, hasher, now, config: { accessTokenTtlMs } } = services;

  return [
    consumer("GET", PATH, "getAccount", "The caller's own account", {
      responses: { 200: AccountRecord },
      async handle({ caller }) {
        const user = found(await findUser(database, loggedInUser(caller)), "user");
        const record = { ...user, created_at: toTime(user.createdAtMs) };
        return jsonResponse(200, pick(AccountRecord, record));
      },
    }),
    consumer("PUT", `${PATH}/password`, "changePassword",
      "Set a new password, which ends every token and browser session of the caller", {
      body: PasswordChange,
      responses: { 204: undefined },
      refuses: [409, 429],
      async handle({ body, ...context }) {
        const { username } = found(await findUser(database, loggedInUser(context.caller)), "user");
        const { address } = context.request;
        const attempt = { username, password: body.current, address, isLoggedIn: true };
        const login = await passwordLogin.check(attempt);
        if (!login) {
          const errors = [{ pointer: "/current", detail: "Is wrong." }];
          throw new Problem(400, "wrong_password", "The current password is wrong.", { errors });
        }
        const { id, phc } = login.user;
        const after = await hasher.hash(body.new);
        await storeAudited(context, [
          replacePassword(id, after, phc),
          ...revokeTokensOfUser(id, now(), accessTokenTtlMs),
        ], { action: "user.change_password", target: id }, services);
        return { status: 204 };
      },
    }),
  ];
}
