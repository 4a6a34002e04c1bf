import assert from "node:assert/strict";
import { type Cidr, parseCidr } from "../../src/base/cidr.ts";

/** The block of addresses that a text names, which must be valid. */
export function readCidr(text: string): Cidr {
  const cidr = parseCidr(text);
  assert.ok(cidr);
  return cidr;
}
