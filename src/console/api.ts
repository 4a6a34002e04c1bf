import { accessToken, learnTime, site } from "./session.ts";

/** The parameters of a query; empty ones are left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** One part of a list. */
interface Part<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** An error response; its message is in the server's own words. */
export class Refusal extends Error {
  readonly status: number;
  /** "" if a proxy in front of the server sent the response. */
  readonly requestId: string;
  /** The maximum age of the sign-in, in seconds; undefined if its age is not the reason. */
  readonly maxAge: string | undefined;
  /** One entry for each wrong member, with its JSON pointer. */
  readonly errors: readonly { readonly pointer?: string; readonly detail: string }[];

  constructor(answer: Response, body: Record<string, unknown>) {
    const { status, headers } = answer;
    super(String(body["detail"] ?? body["title"] ?? `Status ${status}`));
    this.status = status;
    this.requestId = String(body["request_id"] ?? headers.get("x-request-id") ?? "");
    this.maxAge = maxAgeOf(answer);
    this.errors = (body["errors"] ?? []) as Refusal["errors"];
  }
}

/** Returns the maximum age of a sign-in, in seconds, if a refusal names one (RFC 9470 §3). */
export const maxAgeOf = ({ headers }: Response) =>
  /max_age="(\d+)"/.exec(headers.get("www-authenticate") ?? "")?.[1];

/**
 * Sends a request with the token of the signed-in user, with the given `token`, or with none if
 * that is "". Returns the response whatever its status. Throws if the server does not answer.
 */
export async function request(
  method: string,
  path: string,
  {
    headers = {},
    body = null,
    signal = AbortSignal.timeout(30_000), // a server that is stopped does not respond
    token: other,
    credentials = "omit",
  }: {
    readonly headers?: Record<string, string>;
    readonly body?: string | null | undefined;
    readonly signal?: AbortSignal;
    readonly token?: string | undefined;
    readonly credentials?: RequestCredentials;
  } = {},
): Promise<Response> {
  const send = async (token: string) => {
    const all = { ...headers, ...token && { authorization: `Bearer ${token}` } };
    // By default no credentials: the browser would ask for a password if an app's is refused.
    const init = { method, headers: all, body, signal, cache: "no-store", credentials } as const;
    const answer = await fetch(site.base + path, init);
    learnTime(answer);
    return answer;
  };
  const answer = await send(other ?? await accessToken());
  const isOver = answer.status === 401 && other === undefined && !maxAgeOf(answer);
  return isOver ? send(await accessToken(true)) : answer;
}

/** Sends a request in JSON. Throws Refusal, or another error if the server does not answer. */
export async function call<Body>(method: string, path: string, body?: unknown): Promise<Body> {
  const json = body === undefined ? {}
    : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await request(method, path, json);
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("content-type") ?? "");
  // A response without JSON is a proxy's: it cannot reach the server, or wants a sign-in.
  if (!isJson && (answer.ok ? text : answer.status >= 500)) {
    throw new TypeError();
  }
  const parsed = isJson ? JSON.parse(text) : {};
  if (answer.ok) return parsed;
  throw new Refusal(answer, parsed);
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

/** Reads a list part by part, until it ends, has `most` items, or has an item that is wanted. */
export async function listUntil<Item>(
  path: string,
  query: Query,
  most: number,
  isWanted: (item: Item) => boolean = () => false,
): Promise<Part<Item>> {
  let [items, next_cursor]: [readonly Item[], string | null] = [[], ""];
  while (next_cursor !== null && items.length < most && !items.some(isWanted)) {
    const part: Part<Item> = await list(path, { ...query, limit: 200, cursor: next_cursor });
    [items, next_cursor] = [[...items, ...part.items], part.next_cursor];
  }
  return { items, next_cursor };
}
