import { ADMIN } from "../app/first_user.ts";
import { newId } from "../base/id.ts";
import { createPasswordHasher } from "../base/password.ts";
import { newPassword } from "../base/secret.ts";
import { toTime } from "../base/time.ts";
import { ConflictError } from "../database/database.ts";
import { BACKEND_SCOPE, CONSUMER_SCOPE } from "../oauth/principal.ts";
import { accountOf, deleteLoginFailures } from "../store/login_failures.ts";
import { findUserByName, hasPassword, insertUser, replacePassword } from "../store/users.ts";
import { auditCommand } from "./backend.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";
import { formatPairs } from "./table.ts";

const VALID_FOR_MS = 86_400_000;

export const SETUP_COMMAND: Command = {
  words: ["setup"],
  purpose: `Set a one-time password for user ${ADMIN}`,
  details: [
    "The password is shown once, and allows one login within 24 hours. After that login the " +
      `user sets a permanent one, as does \`user set ${ADMIN} --password\`. The user's ` +
      "sessions, login tokens and grants end.",
    `If the database, or user ${ADMIN} in it, does not exist, it is created.`,
  ],
  examples: ["gatepost setup"],
  async run(context) {
    const { database } = await context.openBackend(true);
    const known = await findUserByName(database, ADMIN);
    if (known?.status === "disabled") {
      throw new Failure(`User ${ADMIN} is disabled: gatepost user set ${ADMIN} --status active`);
    }
    if (known && !known.scopes.includes(BACKEND_SCOPE)) {
      throw new Failure(
        `User ${ADMIN} lacks scope ${BACKEND_SCOPE}: ` +
          `gatepost user set ${ADMIN} --scope "${[...known.scopes, BACKEND_SCOPE].join(" ")}"`,
      );
    }
    const { accessTokenTtlMs } = context.config;
    const password = newPassword();
    const phc = await createPasswordHasher(1).hash(password);
    const nowMs = Date.now();
    const untilMs = nowMs + VALID_FOR_MS;
    const id = known?.id ?? newId("u", nowMs);
    const scopes = [BACKEND_SCOPE, CONSUMER_SCOPE];
    const times = { createdAtMs: nowMs, passwordUntilMs: untilMs };
    await database.write([
      ...known
        ? [
          ...replacePassword(id, phc, hasPassword(known.phc), nowMs, accessTokenTtlMs, untilMs),
          deleteLoginFailures(accountOf(ADMIN)),
        ]
        : [insertUser({ id, username: ADMIN, phc, scopes, ...times })],
      auditCommand("user.setup", id, nowMs),
    ]).catch((cause: unknown) => {
      if (!(cause instanceof ConflictError)) throw cause;
      throw new Failure(`Another process just changed user ${ADMIN}; nothing was changed here.`);
    });
    const until = toTime(untilMs);
    context.print({ username: ADMIN, password, expires_at: until }, () => {
      const pairs = [["username", ADMIN], ["password", password], ["expires at", until]] as const;
      return `It is shown here only, and allows one login.\n\n${formatPairs(pairs)}`;
    });
  },
};
