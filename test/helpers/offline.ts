import { EgressError } from "../../src/outbound/reachable.ts";
import { findShortage } from "../../src/outbound/shortage.ts";

/** The `skip` of a test that uses the system's name servers: it is skipped without a network. */
export const OFFLINE =
  findShortage(new EgressError("NAME_LOOKUP_UNANSWERED", "any")) !== undefined && "no network";
