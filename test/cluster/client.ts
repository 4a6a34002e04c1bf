import type { Gatepost } from "../helpers/gatepost.ts";

/** A response, from whichever node. */
export interface Reply {
  readonly status: number;
  readonly text: string;
}

/** A request as a client makes it. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | URLSearchParams;
}

const REPLY_MS = 15_000;

/**
 * A client of several nodes: it stays with one until a connection to it fails. Its send() returns
 * undefined if no response came: then nobody knows what became of the request.
 */
export function createNodeClient(gateposts: readonly Gatepost[], first: number) {
  let index = first;
  return async function send(call: Call): Promise<Reply | undefined> {
    const { url } = gateposts[index % gateposts.length] ?? {};
    const { path, ...init } = call;
    try {
      const signal = AbortSignal.timeout(REPLY_MS);
      const response = await fetch(url + path, { ...init, signal });
      return { status: response.status, text: await response.text() };
    } catch {
      index++;
      return undefined;
    }
  };
}

/** Whether a reply says that a write may be stored or not, as no reply does. */
export function isUnknown(reply: Reply | undefined): boolean {
  return reply === undefined || reply.text.includes("outcome_unknown") ||
    reply.text.includes("outcome is unknown");
}
