import assert from "node:assert/strict";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import type { LoadedEndpoint } from "../../src/hosting/check_endpoint.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";
import { hostedOperation } from "../../src/hosting/handle.ts";
import type { HttpResponse } from "../../src/base/http_message.ts";
import type { LogFields } from "../../src/base/log.ts";
import { type FieldError, Problem } from "../../src/base/problem.ts";
import { problemResponse } from "../../src/http/respond.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { configOf } from "./config.ts";
import { sampleRequest } from "./http_request.ts";

type HostingServices = Parameters<typeof hostedOperation>[1];

/** The stored values of an event, without its time. */
export type StoredEvent =
  & Readonly<Record<"id" | "name" | "subject" | "json", unknown>>
  & { readonly key?: unknown };

export interface Setting extends Partial<HostingServices> {
  readonly maxBodyBytes?: number;
  readonly maxPayloadBytes?: number;
  readonly deliveries?: readonly string[];
  /** Gets the events that are stored in one write. */
  readonly store?: (events: readonly StoredEvent[]) => Promise<void>;
}

/** An endpoint as loaded from a module that exports these members. */
export function loadedEndpoint(members: Readonly<Record<string, unknown>>): LoadedEndpoint {
  const errors: FieldError[] = [];
  const endpoint = checkEndpoint(members, { file: "orders.ts", exportName: "orders" }, errors);
  assert.deepEqual(errors, []);
  assert.ok(endpoint);
  return endpoint;
}

/** Reads the events that a statement stores: each has nine values. */
function readInserted({ params }: Sql): StoredEvent[] {
  const rows = Array.from({ length: params.length / 9 }, (_, at) => params.slice(9 * at));
  return rows.map(([id, name, , subject, json, key]) =>
    ({ id, name, subject, json, ...typeof key === "string" && { key } })
  );
}

/** The services for endpoint modules; `setting` replaces some. Nothing is logged or stored. */
export function hostingServices(setting: Setting = {}): HostingServices {
  const { deliveries = [], store, ...services } = setting;
  const { maxBodyBytes = 1_048_576, maxPayloadBytes = 1_000, ...more } = services;
  const ignore = () => {};
  const database: Database = {
    // One row for each delivery with that id; no caller reads its other columns.
    query: async <Row>({ params }: Sql) =>
      deliveries.filter((id) => params.includes(id)).map((id) => ({ id }) as Row),
    async write(statements) {
      await store?.(statements.flatMap(readInserted));
      return statements.map(() => 1);
    },
    close: () => Promise.resolve(),
  };
  return {
    config: { ...configOf({}), maxBodyBytes, maxPayloadBytes },
    database,
    events: [],
    issuer: "https://api.example",
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    metrics: createServiceMetrics(),
    wake: ignore,
    now: () => 1_000,
    ...more,
  };
}

/** The caller that a token names. */
export const HOSTED_CALLER: Caller = {
  sub: "u1",
  kind: "user",
  clientId: "login",
  scopes: ["orders"],
  grantId: "g1",
  jti: "g12",
  expiresAtMs: 1,
};

/** What results from one request to an endpoint. */
export interface Outcome {
  readonly response?: HttpResponse;
  readonly problem?: Problem;
  readonly stored: readonly StoredEvent[];
  readonly lines: readonly { readonly msg: string; readonly fields: LogFields }[];
}

type Parts = Parameters<ReturnType<typeof hostedOperation>["handle"]>[0];

/** Handles a request by an endpoint as the pipeline does; `parts` may replace the caller. */
export async function outcomeOf(
  endpoint: LoadedEndpoint,
  parts: Pick<Parts, "request"> & Partial<Parts>,
  setting: Setting = {},
): Promise<Outcome> {
  const stored: StoredEvent[] = [];
  const lines: Outcome["lines"][number][] = [];
  const write = (msg: string, fields = {}) => void lines.push({ msg, fields });
  const { handle } = hostedOperation(endpoint, hostingServices({
    store: async (events) => void stored.push(...events),
    log: { debug: write, info: write, warn: write, error: write },
    ...setting,
  }));
  const caller = endpoint.scopes && HOSTED_CALLER;
  const authenticateAgain = () => Promise.resolve();
  const all = { params: {}, caller, query: {}, body: undefined, authenticateAgain, ...parts };
  try {
    return { response: await handle(all), stored, lines };
  } catch (problem) {
    assert.ok(problem instanceof Problem, String(problem));
    return { problem, stored, lines };
  }
}

/** As {@link outcomeOf}, with the response that the client gets, and the names of the events. */
export async function callHosted(
  endpoint: LoadedEndpoint,
  sent: Parameters<typeof sampleRequest>[0] = {},
) {
  const request = sampleRequest({ method: endpoint.method, path: endpoint.pattern.text, ...sent });
  const events = [{ name: "a", description: "A", scope: [] }];
  const { response, problem, stored, lines } = await outcomeOf(endpoint, { request }, { events });
  const sentBack = problem ? problemResponse(problem, "r1") : response;
  const { status, headers = {}, body } = sentBack ?? assert.fail();
  const json: unknown = typeof body === "string" ? JSON.parse(body) : body;
  const names = stored.map(({ name }) => name);
  const logged = lines.map(({ msg, fields }): LogFields & { msg: string } => ({ ...fields, msg }));
  return { status, headers, json, stored: names, lines: logged };
}
