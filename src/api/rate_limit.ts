import type { HttpRequest } from "../base/http_message.ts";
import { Problem } from "../base/problem.ts";
import { type Claim, createLimiter, formatRate, type Quota } from "../base/rate.ts";
import { throttleAddress } from "../http/client_address.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import type { Operation } from "./operation.ts";

/** Counts a request by every limit that it is under; undefined where there is none. */
export type LimitRequest<Result = Limited | undefined> = (
  operation: Operation,
  caller: Caller | undefined,
  request: Pick<HttpRequest, "address">, // which is costly to find
) => Result;

/** What the limits of a request say. */
interface Limited {
  /** For its response, whichever that becomes. */
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: Problem | undefined;
}

/** One limit of a request by its name in the headers: endpoint, user, app or address. */
interface Policy extends Claim {
  readonly name: string;
}

/**
 * Makes the limits of requests, which are counted in memory. A request without a token is counted
 * by its address, one of a user as the user's and, where that has a rate, the app's, too.
 *
 * @param now milliseconds of a clock that never goes back
 */
export function createRateLimit(
  { config: { rateLimit }, rates, metrics }: Pick<Services, "config" | "rates" | "metrics">,
  now: () => number,
): LimitRequest {
  const take = createLimiter(now);

  /** Ids and addresses are no keys of each other. */
  const policiesOf: LimitRequest<Policy[]> = ({ limit, method, path }, caller, request) => {
    const policies: Policy[] = [];
    if (limit !== undefined && limit !== "never") {
      const { by } = limit;
      const whose = by === "address" ? throttleAddress(request.address)
        : by === "app" ? caller?.clientId : caller?.sub;
      policies.push({ name: "endpoint", key: `${method} ${path} ${whose}`, rate: limit });
    }
    if (!caller) {
      if (!rateLimit) return policies;
      const key = throttleAddress(request.address);
      return [...policies, { name: "address", key, rate: rateLimit }];
    }
    const { sub, kind, clientId } = caller;
    const own = rates.find(sub) ?? rateLimit;
    if (own) policies.push({ name: kind, key: sub, rate: own });
    const ofApp = kind === "user" && rates.find(clientId);
    if (ofApp) policies.push({ name: "app", key: clientId, rate: ofApp });
    return policies;
  };

  return (operation, caller, request) => {
    const { limit } = operation;
    if (limit === "never" || (!limit && !rateLimit && rates.isEmpty())) return undefined;
    const policies = policiesOf(operation, caller, request);
    if (policies.length === 0) return undefined;
    const quotas = take(policies);
    const refusing = quotas.filter(({ waitMs }) => waitMs > 0);
    for (const { name } of refusing) metrics.count("gatepost_rate_limited_total", [name]);
    return { headers: toHeaders(quotas), refusal: toRefusal(refusing) };
  };
}

/** draft-ietf-httpapi-ratelimit-headers-10, §3 and §4. */
function toHeaders(quotas: readonly (Policy & Quota)[]): Record<string, string> {
  const policies = quotas.map(({ name, rate: { count, windowMs } }) =>
    `"${name}";q=${count};w=${windowMs / 1_000}`
  );
  const left = quotas.map(({ name, remaining, fullInMs }) =>
    `"${name}";r=${remaining};t=${Math.ceil(fullInMs / 1_000)}`
  );
  return { "RateLimit-Policy": policies.join(", "), RateLimit: left.join(", ") };
}

/** The refusal of the limit that says to wait longest. */
function toRefusal(refusing: readonly (Policy & Quota)[]): Problem | undefined {
  const [longest] = refusing.toSorted((a, b) => b.waitMs - a.waitMs);
  if (!longest) return undefined;
  const { name, rate, waitMs } = longest;
  const detail = `More requests than the limit of this ${name} allows: ${formatRate(rate)}.`;
  return new Problem(429, "rate_limited", detail, {
    headers: { "Retry-After": String(Math.ceil(waitMs / 1_000)) },
  });
}
