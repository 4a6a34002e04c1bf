import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import type { RqliteClient, RqliteResult } from "./rqlite_client.ts";
import { decodeRows, encodeStatement, toError } from "./rqlite_statement.ts";
import type { Sql } from "./sql.ts";

const DEADLINE_MS = 5_000;
/** How many requests are under way; meanwhile the next one gathers. */
const IN_FLIGHT = 4;
const GROUP_LIMIT = 64;

/** Makes the reads of a cluster: all of one turn of the loop in one request, the same one once. */
export function createRqliteReader(client: Pick<RqliteClient, "ask" | "leaderChanges">) {
  const gathering = new Map<string, PromiseWithResolvers<RqliteResult>>();
  let inFlight = 0;
  /** At how many changes of the leader one was known to have applied all that was committed. */
  let confirmedAt = -1;

  function flush(): void {
    while (inFlight < IN_FLIGHT && gathering.size > 0) {
      const group = new Map(gathering.entries().take(GROUP_LIMIT));
      for (const text of group.keys()) gathering.delete(text);
      void run(group);
    }
  }

  async function run(group: Map<string, PromiseWithResolvers<RqliteResult>>): Promise<void> {
    inFlight++;
    try {
      let changes = 0;
      const results = await client.ask(
        () => {
          changes = client.leaderChanges();
          // A new leader may not have applied all yet; a read through the log waits until it has.
          return `/db/query?level=${confirmedAt === changes ? "weak" : "strong"}&redirect&noparse`;
        },
        group.keys().toArray(),
        performance.now() + DEADLINE_MS,
      );
      confirmedAt = changes;
      group.values().forEach(({ resolve, reject }, index) => {
        const { error = undefined, ...result } = results[index] ?? { error: "There is no result" };
        if (error === undefined) resolve(result);
        else reject(toError(error));
      });
    } catch (cause) {
      // Whatever has run of a SELECT, it stores nothing.
      const isUnknown = cause instanceof OutcomeUnknownError;
      const error = isUnknown ? new UnavailableError(cause.message) : cause;
      for (const { reject } of group.values()) reject(error);
    } finally {
      inFlight--;
      flush();
    }
  }

  return async <Row>(statement: Sql): Promise<Row[]> => {
    if (gathering.size === 0) setImmediate(flush);
    const waiting = gathering.getOrInsertComputed(
      encodeStatement(statement),
      () => Promise.withResolvers<RqliteResult>(),
    );
    return decodeRows<Row>(await waiting.promise);
  };
}
