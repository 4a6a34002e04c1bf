import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "../../src/api/operation.ts";
import { createRateLimit } from "../../src/api/rate_limit.ts";
import { createServiceMetrics } from "../../src/app/metrics.ts";
import { parseRate } from "../../src/base/rate.ts";
import type { Caller } from "../../src/oauth/principal.ts";
import { configOf } from "../helpers/config.ts";
import { sampleOperation } from "../helpers/operation.ts";

const rest = { scopes: [], grantId: "g1", jti: "g12", expiresAtMs: 1 };
const ALICE: Caller = { sub: "u1", kind: "user", clientId: "login", ...rest };
const ALICE_IN_SHOP: Caller = { ...ALICE, clientId: "a1" };
const BOB_IN_SHOP: Caller = { ...ALICE_IN_SHOP, sub: "u2" };
const SHOP: Caller = { ...ALICE, sub: "a1", kind: "app", clientId: "a1" };

/** Rate limits of the given principals, and the one for all others. */
function openStage(rates: Readonly<Record<string, string>> = {}, all = "") {
  const limit = createRateLimit({
    config: configOf({ GATEPOST_RATE_LIMIT: all }),
    rates: {
      find: (id) => parseRate(rates[id] ?? ""),
      refresh: () => Promise.resolve(),
    },
    metrics: createServiceMetrics(),
  }, () => 5_000);
  /** Whether the request is refused, and the RateLimit header of its response. */
  return (caller?: Caller, { address = "192.0.2.1", ...more }: Partial<Operation> & {
    address?: string;
  } = {}) => {
    const limited = limit(sampleOperation(more), caller, { address });
    if (!limited) return "no limit";
    const { RateLimit } = limited.headers;
    const { refusal } = limited;
    return refusal ? `${refusal.status} ${refusal.headers["Retry-After"]} ${RateLimit}` : RateLimit;
  };
}

const limitOf = (rate: string, by: "caller" | "app" | "address") => {
  const parsed = parseRate(rate);
  assert.ok(parsed);
  return { limit: { ...parsed, by } };
};

test("a request is not limited where no limit is configured", () => {
  const ask = openStage();
  assert.deepEqual([ask(), ask(ALICE), ask(SHOP)], ["no limit", "no limit", "no limit"]);
});

test("a refusal names its limit, and does not count against the other limits", () => {
  const ask = openStage({ u1: "100/1m" });
  const endpoint = limitOf("1/10s", "caller");
  assert.equal(ask(ALICE, endpoint), '"endpoint";r=0;t=10, "user";r=99;t=1');
  assert.equal(ask(ALICE, endpoint), '429 10 "endpoint";r=0;t=10, "user";r=99;t=1');
  assert.equal(ask(ALICE), '"user";r=98;t=2');
  assert.equal(ask(ALICE, { ...endpoint, path: "/y" }), '"endpoint";r=0;t=10, "user";r=97;t=2');
});

test("where several limits refuse, Retry-After is the longest wait", () => {
  const ask = openStage({ u1: "1/1m" });
  ask(ALICE, limitOf("1/10s", "caller"));
  assert.equal(ask(ALICE, limitOf("1/10s", "caller")),
    '429 60 "endpoint";r=0;t=10, "user";r=0;t=60');
});

test("an endpoint's limit counts requests by caller, by app or by address", () => {
  const by = (by: "caller" | "app" | "address") => {
    const ask = openStage();
    const shared = limitOf("9/1s", by);
    return [
      [ALICE_IN_SHOP, "192.0.2.1"],
      [ALICE, "192.0.2.2"],
      [BOB_IN_SHOP, "192.0.2.1"],
      [SHOP, "192.0.2.1"],
    ].map(([caller, address]) =>
      /r=(\d)/.exec(String(ask(caller as Caller, { ...shared, address: String(address) })))?.[1]
    ).join("");
  };
  assert.equal(by("caller"), "8788");
  assert.equal(by("app"), "8876");
  assert.equal(by("address"), "8876");
});

test("a user's request counts against the app's rate too, an app's against its own", () => {
  const ask = openStage({ a1: "9/1s" });
  assert.equal(ask(ALICE), "no limit");
  assert.equal(ask(ALICE_IN_SHOP), '"app";r=8;t=1');
  assert.equal(ask(SHOP), '"app";r=7;t=1');
  const both = openStage({ a1: "9/1s", u1: "5/1s" });
  assert.equal(both(ALICE_IN_SHOP), '"user";r=4;t=1, "app";r=8;t=1');
});

test("GATEPOST_RATE_LIMIT is for callers without a rate, and for anonymous addresses", () => {
  const ask = openStage({ u1: "5/1s" }, "9/1s");
  assert.equal(ask(ALICE), '"user";r=4;t=1');
  assert.equal(ask(BOB_IN_SHOP), '"user";r=8;t=1');
  assert.equal(ask(SHOP), '"app";r=8;t=1');
  assert.equal(ask(), '"address";r=8;t=1');
  assert.equal(ask(undefined, { address: "192.0.2.2" }), '"address";r=8;t=1');
  assert.equal(ask(undefined, { limit: "never" }), "no limit");
});

test("the addresses of one IPv6 /64 count as one", () => {
  const ask = openStage({}, "9/1s");
  const addresses = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"];
  assert.deepEqual(addresses.map((address) => ask(undefined, { address })),
    ['"address";r=8;t=1', '"address";r=7;t=1', '"address";r=8;t=1']);
});
