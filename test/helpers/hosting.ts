import assert from "node:assert/strict";
import { parseConfig } from "../../src/config.ts";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import type { HostingServices } from "../../src/hosting/handle.ts";

/** What the endpoints of modules work with, changed as given; nothing is logged or stored. */
export function hostingServices(
  { deliveries = [], maxBodyBytes = 1_048_576, ...more }:
    & Partial<HostingServices>
    & { readonly maxBodyBytes?: number; readonly deliveries?: readonly string[] } = {},
): HostingServices {
  const parsed = parseConfig({});
  assert.ok(parsed.ok);
  const ignore = () => {};
  const database: Database = {
    // A row for each delivery of that id, which nobody looks at.
    query: async <Row>({ params }: Sql) =>
      deliveries.filter((id) => params.includes(id)).map((id) => ({ id }) as Row),
    write: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
  return {
    config: { ...parsed.config, maxBodyBytes },
    database,
    issuer: "https://api.example",
    maxPayloadBytes: 1_000,
    newEventId: () => "e1",
    commit: () => Promise.resolve(),
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    ...more,
  };
}
