import type { Context } from "../../src/mod.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { loadedEndpoint, outcomeOf, type Setting } from "../helpers/hosting.ts";
import { sampleRequest } from "../helpers/http_request.ts";

export type Handle = (context: Context<unknown>) => unknown;

export type Sent = Parameters<typeof sampleRequest>[0] & {
  readonly type?: string;
  readonly chunked?: boolean;
};

export interface CallSetting extends Pick<Setting, "maxBodyBytes" | "store"> {
  readonly ownMaxBody?: string;
  readonly caller?: Caller;
  /** More fields of the endpoint. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly params?: Readonly<Record<string, string>>;
  readonly authenticateAgain?: () => Promise<void>;
}

export const JSON_TYPE = "application/json";
export const FORM_TYPE = "application/x-www-form-urlencoded";

/**
 * Has one handler respond to one request, and returns everything that results, with the number of
 * times that the body was read.
 */
export async function call(handle: Handle, sent: Sent = {}, setting: CallSetting = {}) {
  const { ownMaxBody, fields, params = {}, caller, authenticateAgain, ...services } = setting;
  const { type, chunked, headers, ...more } = sent;
  const { body } = sent;
  const length = chunked
    ? { "transfer-encoding": "chunked" }
    : body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const { readBody, ...request } = sampleRequest({
    method: "POST",
    path: "/base/orders/7",
    ...more,
    headers: {
      host: "api.example",
      ...length,
      ...(type !== undefined && { "content-type": type }),
      ...headers,
    },
  });
  const endpoint = loadedEndpoint({
    method: "POST",
    path: "/orders/:id",
    accepts: ["form"],
    ...fields,
    ...(caller ? { scope: [] } : { public: true }),
    ...(ownMaxBody !== undefined && { maxBody: ownMaxBody }),
    handle,
  });
  let reads = 0;
  const read = (maxBytes: number) => {
    reads++;
    return readBody(maxBytes);
  };
  const outcome = await outcomeOf(
    endpoint,
    {
      request: { ...request, readBody: read },
      params,
      caller,
      ...(authenticateAgain && { authenticateAgain }),
    },
    { issuer: "https://api.example/base", maxPayloadBytes: 64, ...services },
  );
  return { ...outcome, reads };
}
