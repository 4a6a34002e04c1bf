import type { PasswordHasher } from "../base/password.ts";
import { sha256 } from "../base/secret.ts";
import type { User } from "../oauth/user.ts";
import { ANONYMOUS, FAILED_LOGIN, UNKNOWN } from "../store/audit.ts";
import type { Database } from "../store/database.ts";
import type { FailureAudit } from "../store/failure_audit.ts";
import { admitPassword, findUserByName } from "../store/users.ts";
import { throttleAddress } from "./client_address.ts";
import { createThrottle } from "./throttle.ts";

/** What became of a user name and a password. */
export type LoginOutcome =
  | {
    readonly kind: "ok";
    readonly user: User;
    /** When the check began: what has been cut off since is not revived by it. */
    readonly sinceMs: number;
  }
  /** Unknown, disabled or the wrong password: not told apart, in time neither. */
  | { readonly kind: "wrong" }
  | { readonly kind: "throttled"; readonly retryAfterSeconds: number };

/** A user name and a password as they came in. */
export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  readonly address: string;
  /** The app that sends them, proven; none where the user does. */
  readonly app?: string;
}

/** Checks a user's password, wherever it comes in. */
export interface PasswordLogin {
  /** Throws Problem 503 when too many passwords are being checked. */
  check(login: LoginAttempt): Promise<LoginOutcome>;
}

/** What the check works with; `sleep` is in milliseconds. */
export interface PasswordLoginOptions {
  readonly database: Database;
  readonly hasher: PasswordHasher;
  readonly failures: FailureAudit;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

const WINDOW_MS = 15 * 60_000;
const ACCOUNT_LIMIT = 10; // of one account from one address
const ADDRESS_LIMIT = 50; // of one address whatever the accounts
// Failures of one account from many addresses: nobody can lock another out, only slow them down.
const SLOW_AFTER = 20;
const SLOW_STEP_MS = 100;
const SLOW_MAX_MS = 2000;

/** Makes the check, with its throttles (RFC 6749 §4.3.2, RFC 9700 §4.14). */
export function createPasswordLogin(options: PasswordLoginOptions): PasswordLogin {
  const { database, hasher, failures, now, sleep } = options;
  const byBoth = createThrottle({ limit: ACCOUNT_LIMIT, windowMs: WINDOW_MS, now });
  const byAddress = createThrottle({ limit: ADDRESS_LIMIT, windowMs: WINDOW_MS, now });
  const slowLimit = SLOW_AFTER + SLOW_MAX_MS / SLOW_STEP_MS;
  const byAccount = createThrottle({ limit: slowLimit, windowMs: WINDOW_MS, now });

  return {
    async check({ username, password, address, app = ANONYMOUS }) {
      const sinceMs = now();
      const from = throttleAddress(address);
      // A hash, because what is sent as a name may be as long as a body and is remembered.
      const account = sha256(username.toLowerCase()).toString("base64url");
      const both = `${from} ${account}`;
      const waitMs = () => Math.max(byBoth.waitMs(both), byAddress.waitMs(from));
      const throttled = (): LoginOutcome => ({
        kind: "throttled",
        retryAfterSeconds: Math.max(1, Math.ceil(waitMs() / 1000)),
      });

      if (waitMs() > 0) return throttled();
      const slowMs = (byAccount.count(account) - SLOW_AFTER) * SLOW_STEP_MS;
      if (slowMs > 0) await sleep(slowMs);
      const user = await findUserByName(database, username);
      const isRight = await hasher.verify(password, user?.phc, {
        // Each try counts as a failure until it is known to be none: several are checked at once.
        admit() {
          if (waitMs() > 0) return false;
          byBoth.fail(both);
          byAddress.fail(from);
          byAccount.fail(account);
          return true;
        },
        report(right) {
          if (!right || user?.status !== "active") return;
          byBoth.clear(both);
          byAddress.forgive(from);
          byAccount.forgive(account);
        },
      });
      if (isRight === undefined) return throttled();
      const wrong = (): LoginOutcome => {
        const target = user?.id ?? UNKNOWN;
        failures.record(from, { actor: app, action: FAILED_LOGIN, target, address });
        return { kind: "wrong" };
      };
      if (!isRight) return wrong();
      // The turn may have been long in coming: a password that was replaced meanwhile opens nothing.
      const current = await findUserByName(database, username);
      return current?.phc === user?.phc && current?.status === "active" &&
          await admitPassword(database, current, now())
        ? { kind: "ok", user: current, sinceMs }
        : wrong();
    },
  };
}
