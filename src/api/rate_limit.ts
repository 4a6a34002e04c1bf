import type { HttpRequest } from "../base/http_message.ts";
import { type Problem, tooMany } from "../base/problem.ts";
import { createLimiter, formatRate, type Rate } from "../base/rate.ts";
import { throttleAddress } from "../http/client_address.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import type { Operation } from "./operation.ts";

/** Counts a request against every limit that applies to it. */
export type LimitRequest = ReturnType<typeof createRateLimit>;

/** The address is costly to compute, so it is read only if a limit counts by address. */
type Addressed = Pick<HttpRequest, "address">;

/**
 * Makes the rate limits of requests, counted in memory. A request without a token counts for its
 * address. A request of a user counts for the user, and for the app too if the app has a rate.
 *
 * @param now milliseconds of a clock that never goes back
 */
export function createRateLimit(
  { config: { rateLimit }, rates, metrics }: Pick<Services, "config" | "rates" | "metrics">,
  now: () => number,
) {
  const take = createLimiter(now);

  /** Ids and addresses can share one map of keys, since an id never equals an address. */
  function policiesOf(
    { limit, method, path }: Operation,
    caller: Caller | undefined,
    request: Addressed,
  ) {
    /** `name` goes into the headers. */
    const policies: { name: string; key: string; rate: Rate }[] = [];
    if (limit === "never") return policies;
    if (limit) {
      const whose = limit.by === "address" ? throttleAddress(request.address)
        : limit.by === "app" ? caller?.clientId : caller?.sub;
      policies.push({ name: "endpoint", key: `${method} ${path} ${whose}`, rate: limit });
    }
    if (caller) {
      const { sub, kind, clientId } = caller;
      const own = rates.find(sub) ?? rateLimit;
      if (own) policies.push({ name: kind, key: sub, rate: own });
      const ofApp = kind === "user" ? rates.find(clientId) : undefined;
      if (ofApp) policies.push({ name: "app", key: clientId, rate: ofApp });
    } else if (rateLimit) {
      policies.push({ name: "address", key: throttleAddress(request.address), rate: rateLimit });
    }
    return policies;
  }

  /**
   * Returns the headers of the response, successful or not (draft-ietf-httpapi-ratelimit-headers-10
   * §3 and §4), and the refusal with the longest wait, if any. Returns undefined without a limit.
   */
  return (operation: Operation, caller: Caller | undefined, request: Addressed) => {
    const policies = policiesOf(operation, caller, request);
    if (policies.length === 0) return undefined;
    const headers = { "RateLimit-Policy": "", RateLimit: "" };
    let refusal: Problem | undefined;
    let longestMs = 0;
    for (const { claim: { name, rate }, remaining, fullInMs, waitMs } of take(policies)) {
      const start = headers.RateLimit === "" ? `"${name}"` : `, "${name}"`;
      headers["RateLimit-Policy"] += `${start};q=${rate.count};w=${rate.windowMs / 1_000}`;
      headers.RateLimit += `${start};r=${remaining};t=${Math.ceil(fullInMs / 1_000)}`;
      if (waitMs > 0) metrics.count("gatepost_rate_limited_total", [name]);
      if (waitMs > longestMs) {
        longestMs = waitMs;
        const detail = `More requests than the limit of this ${name} allows: ${formatRate(rate)}.`;
        refusal = tooMany("rate_limited", detail, waitMs);
      }
    }
    return { headers, refusal };
  };
}
