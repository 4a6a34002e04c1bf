import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { listen } from "../helpers/listen.ts";

export type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

export const succeed: Handle = (_, response) => void response.end('{"results":[{}]}');
export const refuse: Handle = (_, response) =>
  void response.writeHead(503).end("leader not found\n");

/** Whether the request failed and its statement has certainly not run. */
export function isRefusal(error: unknown): boolean {
  return error instanceof UnavailableError && !(error instanceof OutcomeUnknownError);
}

/** A client of several nodes, whose responses the test chooses. */
export async function stage(t: TestContext, count = 1) {
  let handle = succeed;
  let asked = 0;
  const nodes = await Promise.all(Array.from({ length: count }, () => {
    const server = createServer((request, response) => {
      asked++;
      handle(request, response);
    });
    return listen(t, server);
  }));
  const client = createRqliteClient({ nodes, isTls: false, credentials: undefined });
  t.after(client.close);
  return {
    nodes,
    ask(param = "", forMs = 5_000) {
      const statements = [JSON.stringify(["SELECT ?", param])];
      return client.ask(() => "/db/query", statements, performance.now() + forMs);
    },
    findLeader: (forMs: number) => client.findLeader(performance.now() + forMs),
    asked: () => asked,
    aheadMs: client.aheadMs,
    request: client.request,
    close: client.close,
    leaderChanges: client.leaderChanges,
    does: (next: Handle) => void (handle = next),
  };
}
