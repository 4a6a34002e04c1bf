import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { PasswordHasher } from "../../src/base/password.ts";
import { createPasswordLogin, type LoginAttempt } from "../../src/api/password_login.ts";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import { Problem } from "../../src/base/problem.ts";
import { type NewAuditEntry, insertAudit } from "../../src/store/audit.ts";
import type { Database } from "../../src/database/database.ts";
import { createFigureCounter } from "../../src/store/figures.ts";
import { addUser, changeUser, openDatabase } from "../helpers/database.ts";

/** The password of user `marta`, and a wrong one. */
export const RIGHT = "correct horse battery";
export const WRONG = "not the password";
/** The default address of a login. */
export const HERE = "192.0.2.1";
/** What a login has that comes through an app with the app's secret. */
export const APP = { app: { id: "a1", isAuthenticated: true } };
export const MINUTE_MS = 60_000;

/** How many passwords have been checked. */
export interface Checks {
  count: number;
}

/** Checks passwords by comparison, `limit` at once, each after a turn of the event loop. */
export function createInstantHasher(limit: number): PasswordHasher {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    hash: (password) => Promise.resolve(`$${password}`),
    async verify(password, phc, turn) {
      if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
      else running++;
      try {
        if (turn && !await turn.admit()) return undefined;
        await new Promise((resolve) => setImmediate(resolve));
        const isRight = phc === `$${password}`;
        await turn?.report(isRight);
        return isRight;
      } finally {
        const next = waiting.shift();
        if (next) next();
        else running--;
      }
    },
  };
}

/** How a login comes: through an app, from a known device, or of a user already logged in. */
export type LoginVia = Pick<LoginAttempt, "app" | "findDevice" | "isLoggedIn">;

/**
 * Opens a login with user `marta` and a clock that the test sets, and records all that it does.
 * `openOther` opens the login of another process on the same database.
 */
export async function openLogin(t: TestContext, hasher: PasswordHasher = createInstantHasher(1)) {
  const stored = openDatabase(t);
  const writes = { count: 0 };
  const database: Database = {
    ...stored,
    write(statements) {
      writes.count++;
      return stored.write(statements);
    },
  };
  const clock = { nowMs: Date.UTC(2026, 0, 1) };
  const sleeps: number[] = [];
  const recorded: NewAuditEntry[] = [];
  const checks: Checks = { count: 0 };
  const counted: PasswordHasher = {
    ...hasher,
    verify: async (password, phc, turn) => {
      const result = await hasher.verify(password, phc, turn);
      if (result !== undefined) checks.count++;
      return result;
    },
  };
  const open = () => createPasswordLogin({
    database,
    hasher: counted,
    failures: {
      record: (_from, failure) => void recorded.push(failure),
      flush: () => Promise.resolve(),
    },
    metrics: createServiceMetrics(),
    figures: createFigureCounter(database, () => clock.nowMs),
    now: () => clock.nowMs,
    sleep: (ms) => {
      sleeps.push(ms);
      return Promise.resolve();
    },
  });
  const loginAt = ({ check }: ReturnType<typeof open>) =>
    async (username: string, password: string, address = HERE, via: LoginVia = {}) => {
      try {
        const found = await check({ username, password, address, ...via });
        if (!found) return { kind: "wrong" } as const;
        await storeLogin(database, clock.nowMs);
        return { kind: "ok", ...found } as const;
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== "throttled") throw error;
        const retryAfterSeconds = Number(error.headers["Retry-After"]);
        return { kind: "throttled", retryAfterSeconds } as const;
      }
    };
  const login = loginAt(open());
  const phc = await hasher.hash(RIGHT);
  const user = await addUser(database, { username: "marta", phc });
  return {
    database,
    login,
    openOther: () => loginAt(open()),
    user,
    clock,
    writes,
    sleeps,
    recorded,
    checks,
    async fail(count: number, username: string, address = HERE, via: LoginVia = {}) {
      for (let at = 0; at < count; at++) {
        assert.equal((await login(username, WRONG, address, via)).kind, "wrong");
      }
    },
    async addDisabled(username: string) {
      const id = await addUser(database, { username, phc });
      await changeUser(database, id, { status: "disabled" });
    },
  };
}

/** Stores an audit entry, as each login with a response does. */
async function storeLogin(database: Database, nowMs: number): Promise<void> {
  const audit = { actor: "u1", action: "user.login", target: "u1", address: HERE };
  await database.write([insertAudit(audit, nowMs)]);
}

/** A login whose hash is not computed until the gate opens. */
export async function openGatedLogin(t: TestContext) {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const instant = createInstantHasher(1);
  const stage = await openLogin(t, {
    ...instant,
    verify: async (password, phc, turn) => {
      reached.resolve();
      await opened.promise;
      return instant.verify(password, phc, turn);
    },
  });
  return { ...stage, gate: { reached: reached.promise, open: () => opened.resolve() } };
}
