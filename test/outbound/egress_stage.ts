import { createEgress, type Egress, type EgressOptions } from "../../src/outbound/egress.ts";
import { readCidr } from "../helpers/cidr.ts";

// Nothing public can be reached from a test: here 127.0.0.2 stands for a public address, because
// it is allowed, and 127.0.0.1 for a private one.
export const PUBLIC = "127.0.0.2";
export const PRIVATE = "127.0.0.1";
export const ALLOWED = readCidr(`${PUBLIC}/32`);

/** A test, or a part of one. */
export interface Scope {
  after(end: () => unknown): void;
}

/** Opens egress that is closed when the test ends. */
export function openEgress(t: Scope, options: Partial<EgressOptions> = {}): Egress {
  const egress = createEgress({
    allow: [ALLOWED],
    connectionsPerOrigin: 64,
    timeoutMs: 5_000,
    ...options,
  });
  t.after(() => egress.close());
  return egress;
}
