import type { Bearer } from "../../src/api/bearer.ts";
import { PAGES_OF_APPS } from "../../src/api/cors.ts";
import type { Operation } from "../../src/api/operation.ts";
import { createPipeline } from "../../src/api/pipeline.ts";
import { createRouter, type Router } from "../../src/api/router.ts";
import type { HttpRequest, HttpResponse } from "../../src/base/http_message.ts";
import type { Log, LogFields } from "../../src/base/log.ts";
import { Problem } from "../../src/base/problem.ts";
import { sampleRequest } from "../helpers/http_request.ts";
import { sampleOperation } from "../helpers/operation.ts";

/** The one origin whose pages may read responses. */
export const ORIGIN = "https://spa.example";

/** Refuses every token. */
export const NO_BEARER: Pick<Bearer, "authenticate"> = {
  async authenticate() {
    throw new Problem(401, "unauthorized", "No.", { headers: { "WWW-Authenticate": "Bearer" } });
  },
};

/** A pipeline of these operations. By default it accepts no token and limits nobody. */
export function openPipeline(
  operations: readonly Operation[],
  more: Partial<Parameters<typeof createPipeline>[0]> = {},
) {
  return createPipeline({
    routers: [createRouter(operations)],
    bearer: NO_BEARER,
    issuer: "https://api.northwind.example",
    isOriginAllowed: async (origin) => origin === ORIGIN,
    site: { name: "Northwind", host: "api.northwind.example", basePath: "" },
    limit: () => undefined,
    maxBodyBytes: 100,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now: () => 0,
    observe() {},
    ...more,
  });
}

/** A pipeline with one public operation at /x, whose clock advances by 1.23456 ms per call. */
export function openStage(
  handle: () => HttpResponse,
  more: Partial<Operation> = {},
  basePath = "",
  routers?: readonly [Router, ...Router[]],
) {
  const observed: (readonly [string, string, number, number])[] = [];
  const logged: (readonly [string, LogFields])[] = [];
  const write = (msg: string, fields: LogFields = {}) => void logged.push([msg, fields]);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  let nowMs = 0;
  const operation = sampleOperation({ cors: PAGES_OF_APPS, handle: async () => handle(), ...more });
  const pipeline = openPipeline([operation], {
    ...(routers && { routers }),
    site: { name: "Northwind", host: "api.northwind.example", basePath },
    log,
    now: () => nowMs += 1.23456,
    observe: (...seen) => void observed.push(seen),
  });
  const ask = (request: Partial<HttpRequest> = {}) =>
    pipeline(sampleRequest({ path: "/x", ...request }));
  return { observed, logged, ask };
}

/** The header's values, whatever the case of its name. */
export function valuesOf(response: HttpResponse, name: string): (string | string[])[] {
  return Object.entries(response.headers ?? {}).filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value);
}
