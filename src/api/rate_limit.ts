import type { HttpRequest } from "../base/http_message.ts";
import { type Problem, tooMany } from "../base/problem.ts";
import { createLimiter, formatRate, type Rate } from "../base/rate.ts";
import { throttleAddress } from "../http/client_address.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import type { Operation } from "./operation.ts";

/** Counts a request by every limit that it is under. */
export type LimitRequest = ReturnType<typeof createRateLimit>;

/** The address is costly to find: it is read where a limit counts by it. */
type Addressed = Pick<HttpRequest, "address">;

/**
 * Makes the limits of requests, which are counted in memory. A request without a token is counted
 * by its address, one of a user as the user's and, where that has a rate, the app's, too.
 *
 * @param now milliseconds of a clock that never goes back
 */
export function createRateLimit(
  { config: { rateLimit }, rates, metrics }: Pick<Services, "config" | "rates" | "metrics">,
  now: () => number,
) {
  const take = createLimiter(now);

  /** Ids and addresses are no keys of each other. */
  function policiesOf(
    { limit, method, path }: Operation,
    caller: Caller | undefined,
    request: Addressed,
  ) {
    /** The name is for the headers. */
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
   * Returns the headers of the response, whichever that becomes (draft-ietf-httpapi-ratelimit-
   * headers-10, §3 and §4), and the refusal that says to wait longest; undefined without a limit.
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
