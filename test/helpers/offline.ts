import { EgressError } from "../../src/outbound/reachable.ts";
import { findShortage } from "../../src/outbound/shortage.ts";

/** For `skip` of a test that asks the system's name servers: without a network nothing is sent. */
export const OFFLINE =
  findShortage(new EgressError("NAME_LOOKUP_UNANSWERED", "any")) !== undefined && "no network";
