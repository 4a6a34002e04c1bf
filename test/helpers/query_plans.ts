import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { insertGrant } from "../../src/store/grants.ts";
import { type Filter, type Given, type List, listPart } from "../../src/store/list.ts";
import { addUser, sampleGrant } from "./database.ts";
import { createDataFolder } from "./process.ts";

export const NOW_MS = 1_900_000_000_000;
export const PAGE = { limit: 50 };
/** A stored user, and the grant of its login. */
export const OWNER = "u00000000";
export const GRANT = newId("g", NOW_MS);
/** A subscription of it, and an event; neither is stored. */
export const SUBSCRIPTION = {
  id: "s00000000",
  principal: OWNER,
  app: "login",
  event: "order.created",
  endpoint: "https://subscriber.example/",
  secret: "whsec_",
  createdAtMs: NOW_MS,
  grant: { id: GRANT, scopes: ["consumer"] },
};
export const EVENT = {
  id: "e00000000",
  name: "order.created",
  json: "{}",
  subject: undefined,
  createdAtMs: NOW_MS,
};

/**
 * Partial indexes, and a table, that hold nothing but work that is to be done now; scanning one
 * is no error.
 */
const WORK_LISTS = ["subscriptions_to_clear", "deliveries_claimed", "resends_running"];
const WORK_TABLE = "subscription_endings";

/** Something that the service does with the database. */
export interface Case {
  readonly name: string;
  /** It may sort, since it reads a bounded number of rows. */
  readonly sorts?: boolean;
  /** The only index by which its statements may look for subscriptions. */
  readonly by?: string;
  run(database: Database): Promise<unknown>;
}

export function writing(name: string, statements: (database: Database) => readonly Sql[]): Case {
  return { name, run: (database) => database.write(statements(database)) };
}

/** A case that lists by the given filters, which its name shows. */
export function listing<const Given extends object>(
  what: string,
  given: Given,
  list: (database: Database, given: Given & typeof PAGE) => Promise<unknown>,
): Case {
  return {
    name: `listing ${what} by ${JSON.stringify(given)}`,
    run: (database) => list(database, { ...given, ...PAGE }),
  };
}

export const of = <F extends Record<string, Filter>, Row, Item extends { readonly id: string }>(
  list: List<F, Row, Item>,
) =>
  (database: Database, given: Given<F>) => listPart(database, list, given);

/** None of the members, each value alone, and each two together. */
export function subsets<const M extends Record<string, readonly unknown[]>>(members: M) {
  type One = { readonly [Key in keyof M]?: M[Key][number] };
  const alone = Object.entries(members)
    .flatMap(([name, values]) => values.map((value) => ({ [name]: value })));
  const pairs = alone.flatMap((one, at) => alone.slice(at + 1).map((two) => ({ ...one, ...two })));
  return [{}, ...alone, ...pairs] as One[];
}

/** Opens a database for the tests of a file, and a second connection that explains statements. */
export async function openPlans() {
  const folder = await createDataFolder();
  const path = join(folder, "gatepost.db");
  const stored = openSqliteDatabase(path);
  const plans = new DatabaseSync(path);
  after(async () => {
    plans.close();
    await stored.close();
    await rm(folder, { recursive: true });
  });
  const scopes = ["consumer"];
  await addUser(stored, { id: OWNER, scopes, createdAtMs: NOW_MS });
  await insertGrant(stored, sampleGrant("login", OWNER, { id: GRANT, scopes }));

  /** Passes everything on and keeps the text of every statement. */
  function record(): { database: Database; statements: Set<string> } {
    const statements = new Set<string>();
    return {
      statements,
      database: {
        query: (statement) => {
          statements.add(statement.sql);
          return stored.query(statement);
        },
        write: (batch) => {
          for (const { sql } of batch) statements.add(sql);
          return stored.write(batch);
        },
        close: () => Promise.resolve(),
      },
    };
  }

  function readPlan(sql: string): string[] {
    return plans.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail));
  }

  /** The steps of a statement's plan that scan a whole table or index. */
  function findScans(sql: string): string[] {
    const steps = readPlan(sql);
    const own = steps.flatMap((step) => /^(?:CO-ROUTINE|MATERIALIZE) (\S+)/.exec(step)?.[1] ?? []);
    return steps.filter((step) => {
      const [, table = "", rest = ""] = /^SCAN (\S+)(.*)$/.exec(step) ?? [];
      // There is one row of account changes, and a few cronjobs.
      return !["", "CONSTANT", "account_changes", "cronjobs", WORK_TABLE, ...own].includes(table) &&
        !rest.includes("VIRTUAL TABLE") && !WORK_LISTS.some((index) => rest.endsWith(` ${index}`));
    });
  }

  /** The steps that sort: a list with one reads all that matches before it returns a page. */
  function findSorts(sql: string): string[] {
    return readPlan(sql).filter((step) => step.includes("TEMP B-TREE"));
  }

  function testPlans(cases: readonly Case[]): void {
    for (const { name, sorts = false, by, run } of cases) {
      test(`${name} scans no whole table`, async () => {
        const { database, statements } = record();
        await run(database);
        assert.ok(statements.size > 0);
        const used = new Set<string>();
        for (const sql of statements) {
          assert.deepEqual(findScans(sql), [], sql);
          if (!sorts) assert.deepEqual(findSorts(sql), [], sql);
          // The search for subscribers to the end's own event does not count.
          for (const step of readPlan(sql).filter((each) => !each.startsWith("SEARCH o "))) {
            for (const way of /subscriptions_by_.*/.exec(step) ?? []) used.add(way);
          }
        }
        if (by !== undefined) assert.deepEqual([...used], [by]);
      });
    }
  }

  /** Tests that each list looks for its rows by the index before it. */
  function testIndexes(lists: readonly (readonly [index: string, list: Case])[]): void {
    for (const [index, { name, run }] of lists) {
      test(`${name} uses ${index}, and needs no limit to the rows it looks at`, async () => {
        const { database, statements } = record();
        await run(database);
        const steps = [...statements].flatMap(readPlan);
        assert.ok(steps.some((step) => step.includes(` ${index} (`)), steps.join("; "));
        // A list without an index limits by OFFSET how many rows it looks at.
        assert.deepEqual([...statements].filter((sql) => sql.includes("OFFSET")), []);
      });
    }
  }

  return { stored, plans, record, readPlan, findScans, findSorts, testPlans, testIndexes };
}
