import assert from "node:assert/strict";
import { test } from "node:test";
import { type Database, UnavailableError } from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { createShift } from "../../src/store/clock_shift.ts";
import { openDatabase } from "../helpers/database.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const STEP_MS = 60_000;

test("a shift that is called again after an error shifts every row once", async (t) => {
  const database = openDatabase(t);
  await database.write([sql`INSERT INTO cronjobs (name, nextAtMs)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1201)
    SELECT 'job' || i, ${NOW_MS + STEP_MS} FROM n`]);
  const changes: number[] = [];
  let calls = 0;
  const failing: Database = {
    ...database,
    async query<Row>(...asked: Parameters<Database["query"]>) {
      if (++calls === 3) throw new UnavailableError("busy");
      return database.query<Row>(...asked);
    },
    async write(statements) {
      if (++calls === 5) throw new UnavailableError("full");
      const changed = await database.write(statements);
      changes.push(...changed);
      return changed;
    },
  };
  const shift = createShift(failing, NOW_MS, STEP_MS);
  await assert.rejects(shift, UnavailableError);
  await assert.rejects(shift, UnavailableError);
  await shift();
  await shift();
  assert.deepEqual(changes, [500, 500, 201]);
  const left = sql`SELECT 1 FROM cronjobs WHERE nextAtMs <> ${NOW_MS + 2 * STEP_MS}`;
  assert.deepEqual(await database.query(left), []);
});
