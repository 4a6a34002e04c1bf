import assert from "node:assert/strict";
import { test } from "node:test";
import { refinedMember } from "../../src/base/refined_member.ts";
import { parseShape } from "../../src/base/shape.ts";
import { checkReachable } from "../../src/api/subscription.ts";
import { NewSubscription, SubscriptionChange } from "../../src/event/subscription.ts";

test("an endpoint is refused with the reason that the address guard gives", () => {
  const refuseEndpoint = (url: URL) => url.hostname === "10.0.0.1" ? "Not there." : undefined;
  const check = checkReachable({ refuseEndpoint });
  const endpoint = "http://10.1/"; // the same address, written shorter
  const errors = [{ pointer: "/endpoint", detail: "Not there." }];
  const fresh = refinedMember(NewSubscription, "endpoint", check);
  assert.throws(() => parseShape(fresh, { event: "a", endpoint }, "body"), { status: 400, errors });
  const change = refinedMember(SubscriptionChange, "endpoint", check);
  assert.throws(() => parseShape(change, { endpoint }, "body"), { status: 400, errors });
  assert.deepEqual(parseShape(change, { status: "paused" }, "body"), { status: "paused" });
});
