import { OutcomeUnknownError, UnavailableError } from "./database.ts";
import type { RqliteClient, RqliteResult } from "./rqlite_client.ts";
import { decodeRows, encodeStatement, toError } from "./rqlite_statement.ts";
import type { Sql } from "./sql.ts";

const DEADLINE_MS = 5_000;
/** The most requests in flight; meanwhile the next one gathers. */
const IN_FLIGHT = 4;
const GROUP_LIMIT = 64;

/** Makes `query`: one request per turn of the event loop, which has equal SELECTs only once. */
export function createRqliteReader(client: Pick<RqliteClient, "ask" | "leaderChanges">) {
  const gathering = new Map<string, PromiseWithResolvers<RqliteResult>>();
  let inFlight = 0;
  /** The leader's change count at which it was last known to have applied all commits. */
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
          // A new leader may lack some commits yet; a read through the log waits for them.
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
      // A SELECT stores nothing, so nothing is unknown.
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
