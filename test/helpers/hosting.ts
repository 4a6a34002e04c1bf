import assert from "node:assert/strict";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import { parseConfig } from "../../src/config.ts";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import type { LoadedEndpoint } from "../../src/hosting/check_endpoint.ts";
import { checkEndpoint } from "../../src/hosting/check_endpoint.ts";
import { hostedOperation } from "../../src/hosting/handle.ts";
import { type FieldError, Problem } from "../../src/base/problem.ts";
import { problemResponse } from "../../src/http/respond.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { sampleRequest } from "./http_request.ts";

type HostingServices = Parameters<typeof hostedOperation>[1];

/** The stored values of an event, without its time. */
export type StoredEvent =
  & Readonly<Record<"id" | "name" | "subject" | "json", unknown>>
  & { readonly key?: unknown };

interface Setting extends Partial<HostingServices> {
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
  const parsed = parseConfig({});
  assert.ok(parsed.ok);
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
    config: { ...parsed.config, maxBodyBytes, maxPayloadBytes },
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

/** Handles a request by an endpoint as the pipeline does, and returns all results. */
export async function callHosted(
  endpoint: LoadedEndpoint,
  sent: Parameters<typeof sampleRequest>[0] = {},
) {
  const stored: unknown[] = [];
  const lines: (Readonly<Record<string, unknown>> & { readonly msg: string })[] = [];
  const write = (msg: string, fields = {}) => void lines.push({ msg, ...fields });
  const { handle } = hostedOperation(endpoint, hostingServices({
    events: [{ name: "a", description: "A", scope: [] }],
    store: async (events) => void stored.push(...events.map(({ name }) => name)),
    log: { debug: write, info: write, warn: write, error: write },
  }));
  const request = sampleRequest({ method: endpoint.method, path: endpoint.pattern.text, ...sent });
  const caller = endpoint.scopes && HOSTED_CALLER;
  const authenticateAgain = () => Promise.resolve();
  const parts = { request, params: {}, caller, query: {}, body: undefined, authenticateAgain };
  const response = await handle(parts).catch((error: unknown) => {
    assert.ok(error instanceof Problem, String(error));
    return problemResponse(error, "r1");
  });
  const { status, headers = {}, body } = response;
  const json: unknown = typeof body === "string" ? JSON.parse(body) : body;
  return { status, headers, json, stored, lines };
}
