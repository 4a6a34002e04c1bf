import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { PasswordHasher } from "../../src/base/password.ts";
import { createPasswordLogin, type LoginOutcome } from "../../src/http/password_login.ts";
import type { AuditRecord } from "../../src/store/audit.ts";
import { updateUser } from "../../src/store/users.ts";
import { addUser, openDatabase } from "./database.ts";

/** The password of user `marta`, and one that is not. */
export const RIGHT = "correct horse battery";
export const WRONG = "not the password";
/** Where a login comes from unless it is told. */
export const HERE = "192.0.2.1";

/** How many passwords have been checked. */
export interface Checks {
  count: number;
}

/** Checks by comparison, `limit` at once, each after a turn of the loop. */
export function createInstantHasher(limit: number): PasswordHasher {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    hash: (password) => Promise.resolve(`$${password}`),
    async verify(password, phc, turn) {
      if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
      else running++;
      try {
        if (turn && !turn.admit()) return undefined;
        await new Promise((resolve) => setImmediate(resolve));
        const isRight = phc === `$${password}`;
        turn?.report(isRight);
        return isRight;
      } finally {
        const next = waiting.shift();
        if (next) next();
        else running--;
      }
    },
    load: () => ({ running, waiting: waiting.length }),
  };
}

/** Opens a login with user `marta`, a clock that the test turns, and all that it does recorded. */
export async function openLogin(t: TestContext, hasher: PasswordHasher = createInstantHasher(1)) {
  const database = openDatabase(t);
  const clock = { nowMs: Date.UTC(2026, 0, 1) };
  const sleeps: number[] = [];
  const recorded: AuditRecord[] = [];
  const checks: Checks = { count: 0 };
  const counted: PasswordHasher = {
    ...hasher,
    verify: async (password, phc, turn) => {
      const result = await hasher.verify(password, phc, turn);
      if (result !== undefined) checks.count++;
      return result;
    },
  };
  const { check } = createPasswordLogin({
    database,
    hasher: counted,
    failures: {
      record: (_from, failure) => void recorded.push(failure),
      flush: () => Promise.resolve(),
    },
    now: () => clock.nowMs,
    sleep: (ms) => {
      sleeps.push(ms);
      return Promise.resolve();
    },
  });
  const login = (username: string, password: string, address = HERE): Promise<LoginOutcome> =>
    check({ username, password, address });
  const phc = await hasher.hash(RIGHT);
  const user = await addUser(database, { username: "marta", phc });
  return {
    database,
    login,
    user,
    clock,
    sleeps,
    recorded,
    checks,
    async fail(count: number, username: string, address = HERE) {
      for (let at = 0; at < count; at++) {
        assert.equal((await login(username, WRONG, address)).kind, "wrong");
      }
    },
    async addDisabled(username: string) {
      const id = await addUser(database, { username, phc });
      const change = { phc: undefined, scopes: undefined, status: "disabled" } as const;
      await database.write([updateUser(id, change)]);
    },
  };
}

/** A login whose hash is computed only once the gate opens. */
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
