import { Problem, tooMany } from "../base/problem.ts";
import type { User } from "../oauth/user.ts";
import { ANONYMOUS, FAILED_LOGIN, UNKNOWN } from "../store/audit.ts";
import type { Services } from "../services.ts";
import {
  accountOf,
  admitLogin,
  BY_APP,
  type CountedLogin,
  countLoginFailures,
  deleteLoginFailures,
} from "../store/login_failures.ts";
import { findUserByName, usePassword } from "../store/users.ts";
import { throttleAddress, throttleNetworks } from "../http/client_address.ts";

/** A user name and a password as they were received. */
export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  readonly address: string;
  /** The app that sends them, and whether the app is authenticated; undefined: the user does. */
  readonly app?: { readonly id: string; readonly isAuthenticated: boolean };
  /** Whether the user is logged in already: then a used one-time password is still accepted. */
  readonly isLoggedIn?: boolean;
  /** Returns the browser's device, if the user with this id has logged in with it before. */
  readonly findDevice?: (user: string) => string | undefined;
}

export type PasswordLogin = ReturnType<typeof createPasswordLogin>;

const ACCOUNT_LIMIT = 10; // failures of one account from one place
const ADDRESS_LIMIT = 50; // failures from one address, of all accounts together
// Failures of one account from many places only slow its logins: nobody can lock a user out.
const SLOW_AFTER = 20;
const SLOW_STEP_MS = 100;
const SLOW_STEPS = 20;

/** Makes the password check, with its throttles (RFC 6749 §4.3.2). */
export function createPasswordLogin(
  { database, hasher, failures, metrics, figures, now, sleep }:
    & Pick<Services, "database" | "hasher" | "failures" | "metrics" | "figures" | "now">
    & { readonly sleep: (ms: number) => Promise<void> },
) {
  /** Any outcome but ok and wrong (throttled, busy) means that no password was checked. */
  const countOutcome = (outcome: string) => {
    metrics.count("gatepost_logins_total", [outcome]);
    figures.add("logins", outcome === "ok", outcome !== "ok" && outcome !== "wrong");
  };

  async function check(attempt: LoginAttempt) {
    const { username, password, address } = attempt;
    const sinceMs = now();
    const user = await findUserByName(database, username);
    const login = countedLogin(attempt, user);
    const count = () => countLoginFailures(database, login, now(), SLOW_AFTER + SLOW_STEPS);
    const throttled = (untilMs: number | null) =>
      tooMany("throttled", "Too many failed logins; try again later.", (untilMs ?? 0) - now());

    const { untilMs, ofAccount } = await count();
    if (untilMs !== null) throw throttled(untilMs);
    const slowMs = (ofAccount - SLOW_AFTER) * SLOW_STEP_MS;
    if (slowMs > 0) await sleep(slowMs);
    let isCounted = false;
    const isRight = await hasher.verify(password, user?.phc, {
      async admit() {
        const { untilMs, ofAccount } = await count(); // again: a refused login writes nothing
        if (untilMs !== null) return false;
        // An account with recent failures may be under many guesses at once: each counts before its
        // check. For other accounts only a wrong password counts, so most logins write nothing.
        isCounted = ofAccount > 0;
        return !isCounted || await admitLogin(database, login, now());
      },
      async report(right) {
        const isOk = right && user?.status === "active";
        if (!isOk && !isCounted) await admitLogin(database, login, now());
        if (!isOk || !isCounted) return;
        // This write shares a commit with what the login stores next. If the commit fails, the
        // login fails too, and the failures expire.
        const here = throttleAddress(address);
        const cleared = [login.place, here, here + BY_APP];
        database.write([deleteLoginFailures(login.account, cleared)]).catch(() => {});
      },
    });
    if (isRight === undefined) throw throttled((await count()).untilMs);
    const refuse = () => {
      const target = user?.id ?? UNKNOWN;
      const actor = attempt.app?.id ?? (attempt.isLoggedIn ? target : ANONYMOUS);
      failures.record(throttleAddress(address), { actor, action: FAILED_LOGIN, target, address });
      return undefined;
    };
    if (!isRight) return refuse();
    // The check may have waited long, so a password that was replaced meanwhile is refused.
    const current = await findUserByName(database, username);
    return current?.phc === user?.phc && current?.status === "active" &&
        (attempt.isLoggedIn || (current.passwordUntilMs ?? Infinity) > now())
      ? { user: current, sinceMs, uses: usePassword(current, now()) }
      : refuse();
  }

  return {
    /**
     * Returns the user; `sinceMs`, when the check began, so that later revocations still apply; and
     * `uses`, statements for the batch that stores the login. ConflictError of that batch: the
     * one-time password was used meanwhile. Undefined for an unknown or disabled user and a wrong
     * password, which neither result nor time tells apart. Throws Problem 429 `throttled`, or 503
     * `busy` while too many passwords are being checked.
     */
    async check(attempt: LoginAttempt) {
      try {
        const found = await check(attempt);
        countOutcome(found ? "ok" : "wrong");
        return found;
      } catch (error) {
        if (error instanceof Problem) countOutcome(error.code); // throttled or busy
        throw error;
      }
    },
  };
}

/**
 * Returns where the failures of a login are counted. All users of an authenticated app share its
 * address, so only the account's limit applies there. People in an office share an address too, so
 * a device that the user has logged in with before is a place of its own.
 */
function countedLogin(
  { username, address, app, findDevice }: LoginAttempt,
  user: User | undefined,
): CountedLogin {
  const account = accountOf(username);
  const device = user && findDevice?.(user.id);
  const isAuthenticated = app?.isAuthenticated ?? false;
  const place = `device ${device}`;
  const networks = device === undefined ? throttleNetworks(address)
    : [{ first: place, last: place, share: 1 }] as const;
  const limits = networks.map(({ share, ...network }) => ({
    ...network,
    ofAccount: share * ACCOUNT_LIMIT,
    ofAll: isAuthenticated || device ? null : share * ADDRESS_LIMIT,
  }));
  return { account, place: networks[0].first + (isAuthenticated ? BY_APP : ""), limits };
}
