import { accessToken, site } from "./session.ts";

/** What a query may be made of; what is empty is left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** One part of a list. */
export interface Part<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** A response that says why nothing was done, as the server worded it. */
export class Refusal extends Error {
  readonly status: number;
  readonly requestId: string;
  /** Of each member that was wrong, by its JSON pointer. */
  readonly errors: readonly { readonly pointer?: string; readonly detail: string }[];

  constructor(status: number, body: Record<string, unknown>, requestId: string) {
    super(String(body["detail"] ?? body["title"] ?? `Status ${status}`));
    this.status = status;
    this.requestId = String(body["request_id"] ?? requestId);
    this.errors = (body["errors"] ?? []) as Refusal["errors"];
  }
}

/**
 * Sends a request with the token of whoever has signed in, another one, or none where it is ""; the
 * response whatever it is. Throws where nobody answers.
 */
export async function request(
  method: string,
  path: string,
  { headers = {}, body, signal, token: other }: {
    readonly headers?: Record<string, string>;
    readonly body?: string | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly token?: string | undefined;
  } = {},
): Promise<Response> {
  const send = async (token: string) => {
    const all = { ...headers, ...token && { authorization: `Bearer ${token}` } };
    // Without credentials the browser does not ask for others where an app's are refused.
    const init: RequestInit = { method, headers: all, cache: "no-store", credentials: "omit" };
    if (body !== undefined) init.body = body;
    if (signal) init.signal = signal;
    return fetch(site.base + path, init);
  };
  const answer = await send(other ?? await accessToken());
  const isOver = answer.status === 401 && other === undefined;
  return isOver ? send(await accessToken(true)) : answer;
}

/** Asks, or has something done, in JSON. Throws Refusal, or TypeError where nobody answers. */
export async function call<Body>(method: string, path: string, body?: unknown): Promise<Body> {
  const json = body === undefined ? {}
    : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await request(method, path, json);
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("content-type") ?? "");
  const parsed = isJson ? JSON.parse(text) : {};
  if (answer.ok) return parsed;
  throw new Refusal(answer.status, parsed, answer.headers.get("x-request-id") ?? "");
}

/** An address with a query. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).map(([name, value]) => [name, String(value ?? "")])
    .filter(([, value]) => value !== "");
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}

/** GET of one thing, or of one part of a list. */
export const get = <Body>(path: string, query: Query = {}) =>
  call<Body>("GET", withQuery(path, query));

/** GET of one part of a list. */
export const list = <Item>(path: string, query?: Query) => get<Part<Item>>(path, query);
