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

/** A user name and a password as they came in. */
export interface LoginAttempt {
  readonly username: string;
  readonly password: string;
  readonly address: string;
  /** The app that sends them, and whether that is proven; none where the user does. */
  readonly app?: { readonly id: string; readonly isProven: boolean };
  /** Whether the user is logged in already: then a one-time password has opened that login. */
  readonly isLoggedIn?: boolean;
  /** The browser's device, if the user of that id has logged in with it before. */
  readonly findDevice?: (user: string) => string | undefined;
}

export type PasswordLogin = ReturnType<typeof createPasswordLogin>;

const ACCOUNT_LIMIT = 10; // of one account from one place
const ADDRESS_LIMIT = 50; // of one address whatever the accounts
// Failures of one account from many places: nobody can lock another out, only slow them down.
const SLOW_AFTER = 20;
const SLOW_STEP_MS = 100;
const SLOW_STEPS = 20;

/** Makes the check, with its throttles (RFC 6749 §4.3.2). */
export function createPasswordLogin(
  { database, hasher, failures, metrics, figures, now, sleep }:
    & Pick<Services, "database" | "hasher" | "failures" | "metrics" | "figures" | "now">
    & { readonly sleep: (ms: number) => Promise<void> },
) {
  /** What is neither right nor wrong was not checked. */
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
        const { untilMs, ofAccount } = await count(); // anew: what is refused writes nothing
        if (untilMs !== null) return false;
        // Guesses at one account, sent all at once, count before their checks; the login of one
        // that has not failed lately counts when it is wrong: so most write nothing here.
        isCounted = ofAccount > 0;
        return !isCounted || await admitLogin(database, login, now());
      },
      async report(right) {
        const isOk = right && user?.status === "active";
        if (!isOk && !isCounted) await admitLogin(database, login, now());
        if (!isOk || !isCounted) return;
        // It shares the commit of what the login stores next. Should it fail, so does that, and
        // the failures age out.
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
    // The check may have waited long: a password that was replaced meanwhile opens nothing.
    const current = await findUserByName(database, username);
    return current?.phc === user?.phc && current?.status === "active" &&
        (attempt.isLoggedIn || (current.passwordUntilMs ?? Infinity) > now())
      ? { user: current, sinceMs, uses: usePassword(current, now()) }
      : refuse();
  }

  return {
    /**
     * The user; when the check began, since what has been revoked since stays revoked; and what
     * goes into the batch of what the login stores: a ConflictError then says that its one-time
     * password has been used meanwhile. Undefined for an unknown or disabled user and a wrong
     * password: the caller cannot tell which, nor by the time. Throws Problem 429 `throttled`, and
     * 503 `busy` when too many are being checked.
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
 * Where the failures of a login are counted. All users of a proven app share its address, so only
 * the account's count there; and those of an office share theirs, so a device that the user has
 * logged in with before is a place of its own.
 */
function countedLogin(
  { username, address, app, findDevice }: LoginAttempt,
  user: User | undefined,
): CountedLogin {
  const account = accountOf(username);
  const device = user && findDevice?.(user.id);
  const isProven = app?.isProven ?? false;
  const place = `device ${device}`;
  const networks = device === undefined ? throttleNetworks(address)
    : [{ first: place, last: place, share: 1 }] as const;
  const limits = networks.map(({ share, ...network }) => ({
    ...network,
    ofAccount: share * ACCOUNT_LIMIT,
    ofAll: isProven || device ? null : share * ADDRESS_LIMIT,
  }));
  return { account, place: networks[0].first + (isProven ? BY_APP : ""), limits };
}
