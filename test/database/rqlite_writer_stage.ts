import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { messageOf } from "../../src/base/message_of.ts";
import type { RqliteClient, RqliteResult } from "../../src/database/rqlite_client.ts";
import { RQLITE_LEDGER } from "../../src/database/rqlite_ledger.ts";
import { createRqliteWriter } from "../../src/database/rqlite_writer.ts";
import type { CommitReport } from "../../src/database/write_result.ts";
import { turn } from "../helpers/turn.ts";

/** Answers the request of a write, and waits for the write. */
export async function stored(
  write: Promise<number[]>,
  response: () => Promise<void>,
): Promise<void> {
  await turn();
  await response();
  assert.deepEqual(await write, [1]);
}

interface Asked extends PromiseWithResolvers<readonly RqliteResult[]> {
  readonly statements: readonly string[];
  readonly untilMs: number;
  readonly path: string;
  isDone: boolean;
}

/** A writer whose cluster is one node in memory, which answers when the test says so. */
export function stage(t: TestContext) {
  const node = new DatabaseSync(":memory:");
  t.after(() => node.close());
  const table = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT) STRICT";
  node.exec(`${RQLITE_LEDGER.sql}; ${table}`);
  let elapsedMs = 1_000_000;
  t.mock.method(performance, "now", () => elapsedMs);
  const asked: Asked[] = [];
  const reports: CommitReport[] = [];
  const client: Pick<RqliteClient, "ask" | "aheadMs"> = {
    aheadMs: () => 0,
    ask(pathOf, statements, untilMs) {
      const waiting = Promise.withResolvers<readonly RqliteResult[]>();
      asked.push({ ...waiting, statements, untilMs, path: pathOf(), isDone: false });
      return waiting.promise;
    },
  };

  /** One transaction, whose results end with the statement that fails. */
  function run(statements: readonly string[]): RqliteResult[] {
    const results: RqliteResult[] = [];
    node.exec("BEGIN");
    for (const [text, ...params] of statements.map((each) => JSON.parse(each))) {
      try {
        const statement = node.prepare(text);
        statement.setReturnArrays(true);
        const isSelect = statement.columns().length > 0;
        results.push(isSelect
          ? { values: statement.all(...params) as unknown as unknown[][] }
          : toResult(Number(statement.run(...params).changes)));
      } catch (error) {
        node.exec("ROLLBACK");
        return [...results, { error: messageOf(error) }];
      }
    }
    node.exec("COMMIT");
    return results;
  }

  const toResult = (changes: number) => (changes === 0 ? {} : { rows_affected: changes });

  /** The first request without a response. */
  function nextAsked(): Asked {
    const first = asked.find(({ isDone }) => !isDone);
    assert.ok(first, "nothing was asked");
    first.isDone = true;
    return first;
  }

  /** Answers the first request without a response, and lets the writer react. */
  async function answer(): Promise<void> {
    const { resolve, statements } = nextAsked();
    resolve(run(statements));
    await turn();
  }

  return {
    writer: createRqliteWriter(client, (report) => void reports.push(report)),
    node,
    asked,
    reports,
    run,
    answer,
    /** Answers all requests without a response, and those that follow. */
    async answerAll(before = () => {}): Promise<void> {
      while (asked.some(({ isDone }) => !isDone)) {
        assert.ok(asked.length < 100, "requests do not end");
        before();
        await answer();
      }
    },
    fail: (error: Error) => nextAsked().reject(error),
    pass: (ms: number) => void (elapsedMs += ms),
    nowMs: () => elapsedMs,
    names: () => node.prepare("SELECT name FROM settings ORDER BY name").all()
      .map(({ name }) => name),
  };
}
