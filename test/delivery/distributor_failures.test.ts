import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import { LEASE_MS, lookForWork, untilIdle } from "../helpers/distributor_process.ts";
import { SILENT } from "../helpers/silent_log.ts";
import { until } from "../helpers/until.ts";
import { openStage, type Stage } from "./distributor_stage.ts";

describe("when the database fails", () => {
  const unknown = () => Promise.reject(new OutcomeUnknownError("no answer"));

  test("an attempt is recorded as soon as possible, and not repeated", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const database = stage.failing("INSERT INTO attempts", 2);
    const process = stage.startProcess({ database, respond: 204 }).wake();
    await stage.untilDelivered(1);
    assert.equal(process.begun.length, 1);
    assert.ok(database.seen() >= 2);
  });

  test("an attempt that is not recorded within its lease is not repeated either", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const database = stage.failing("INSERT INTO attempts", 4);
    const process = stage.startProcess({ database, respond: 204 }).wake();
    await until(() => database.seen() > 0);
    stage.nowMs += LEASE_MS + 1;
    process.wake();
    await stage.untilDelivered(1);
    assert.equal(process.begun.length, 1);
  });

  test("repeated errors of an attempt and of rounds are each logged once", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const [warn, isDown] = [t.mock.fn<Log["warn"]>(), Promise.reject(new UnavailableError("down"))];
    isDown.catch(() => {});
    let looks = 0;
    const database = {
      ...stage.failing("INSERT INTO attempts", 3),
      query<Row>(select: Sql): Promise<Row[]> {
        return warn.mock.callCount() === 0 || looks++ > 20 ? stage.database.query(select) : isDown;
      },
    };
    const process = stage.startProcess({ database, respond: 204, log: { ...SILENT, warn } });
    const look = setInterval(process.wake, 5);
    t.after(() => clearInterval(look));
    await until(async () => looks > 20 && (await stage.counts())["delivered"] === 1);
    const lines = warn.mock.calls.map(({ arguments: [line] }) => line);
    assert.deepEqual(lines, ["an attempt cannot be recorded yet", "distribution is held up"]);
  });

  for (const text of ["INSERT INTO deliveries", "SET claim = ?"]) {
    test(`a failed ${text} is retried soon, without waiting for the interval`, async (t) => {
      const stage = await openStage(t, { subscriptions: 1, events: 3 });
      const database = stage.failing(text, 1);
      const process = stage.startProcess({ database, respond: 204 }).wake();
      await stage.untilDelivered(3);
      assert.ok(database.seen() >= 1);
      assert.equal(process.begun.length, 3);
    });
  }

  describe("deliveries of a claim with an unknown outcome are sent once:", () => {
    const table: [what: string, fail: (stage: Stage) => Database][] = [
      ["the claim was stored", ({ intercept }) =>
        intercept("SET claim = ?", async (store, nth) => {
          const changes = await store();
          return nth === 1 ? unknown() : changes;
        })],
      ["the claim is stored later", ({ intercept }) => {
        let storeLate = () => Promise.resolve([0]);
        return intercept("SET claim = ?", async (store, nth) => {
          if (nth === 2) await storeLate();
          if (nth > 1) return store();
          storeLate = store;
          return unknown();
        });
      }],
      ["the claim cannot be read", ({ database }) => {
        let isFirst = true;
        return {
          ...database,
          query<Row>(select: Sql) {
            const isClaimed = select.sql.includes("claim = ? AND dueAtMs = ?");
            if (!isClaimed || !isFirst) return database.query<Row>(select);
            isFirst = false;
            return Promise.reject(new UnavailableError("down"));
          },
        };
      }],
    ];
    for (const [what, fail] of table) {
      test(what, async (t) => {
        const stage = await openStage(t, { subscriptions: 1, events: 20 });
        const process = stage.startProcess({ database: fail(stage), respond: 204 }).wake();
        const look = setInterval(process.wake, 100);
        t.after(() => clearInterval(look));
        await stage.untilDelivered(20);
        assert.equal(process.begun.length, 20);
      });
    }
  });

  for (const claims of [false, true]) {
    const what = claims ? " that also claims" : "";
    test(`a fan-out${what} is not repeated if its outcome is unknown`, async (t) => {
      const stage = await openStage(t, { subscriptions: 1 });
      const database = stage.intercept("INSERT INTO deliveries", async (store, nth) => {
        const changes = await store();
        return nth <= 3 ? unknown() : changes;
      });
      const process = stage.startProcess({ database, respond: 204 });
      if (claims) await lookForWork(stage, process); // and find that nothing is due
      for (let round = 1; round <= 3; round++) {
        await stage.dispatch();
        process.wake();
        await until(() => database.seen() === round);
      }
      await stage.untilDelivered(3);
      await untilIdle(process);
      assert.equal(process.begun.length, 3);
    });
  }

  test("a failed round does not reset quietMs()", async (t) => {
    const stage = await openStage(t, { subscriptions: 1, events: 1 });
    const database = stage.failing("INSERT INTO deliveries", 2);
    const process = stage.startProcess({ database, respond: 204 });
    stage.nowMs += 60_000;
    process.wake();
    await until(() => database.seen() === 1);
    assert.equal(process.distributor.quietMs(), 60_000);
    await stage.untilDelivered(1);
    assert.equal(process.distributor.quietMs(), 0);
  });
});

test("attempts that end while another is being recorded are recorded together", async (t) => {
  const stage = await openStage(t, { subscriptions: 1, events: 8 });
  const recorded = Promise.withResolvers<void>();
  const database = stage.intercept("INSERT INTO attempts", async (store, nth) => {
    if (nth === 1) await recorded.promise;
    return store();
  });
  const process = stage.startProcess({ database }).wake();
  await until(() => process.open.length === 8);
  process.open[0]?.end(204);
  await until(() => database.seen() === 1);
  for (const attempt of [...process.open]) {
    attempt.end(204);
    await sleep(20);
  }
  recorded.resolve();
  await stage.untilDelivered(8);
  assert.equal(database.seen(), 2);
});
